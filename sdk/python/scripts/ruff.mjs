// Checks the Python files with ruff, by the settings of pyproject.toml. With --write it formats them, too.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { PositionEncoding, Workspace } from "@astral-sh/ruff-wasm-nodejs";

const python = process.env.PYTHON ?? "/usr/bin/python3";
const settings = execFileSync(python, ["-c", "import json, tomllib; print(json.dumps(tomllib.load(open('pyproject.toml', 'rb'))['tool']['ruff']))"]);
const { "extend-exclude": excluded, src: folders, ...options } = JSON.parse(settings);
const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard", ...folders], { encoding: "utf8" })
  .split("\n")
  .filter((f) => f.endsWith(".py") && !excluded.includes(f));

const { lint, ...rest } = options;
const { "per-file-ignores": perFile, ...rules } = lint;
const spaces = new Map();
/** The workspace with the rules for a file: the library does not know its path. */
function workspaceOf(file) {
  const ignored = Object.entries(perFile).flatMap(([glob, codes]) => (file.startsWith(glob.replace("*", "")) ? codes : []));
  const key = ignored.join();
  if (!spaces.has(key)) {
    spaces.set(key, new Workspace({ ...rest, lint: { ...rules, ignore: [...rules.ignore, ...ignored] } }, PositionEncoding.Utf16));
  }
  return spaces.get(key);
}

/** The text after an edit. */
function edited(text, { content, location: from, end_location: to }) {
  const lines = text.split("\n");
  const at = ({ row, column }) => lines.slice(0, row - 1).reduce((n, l) => n + l.length + 1, 0) + column - 1;
  return text.slice(0, at(from)) + (content ?? "") + text.slice(at(to));
}

/** The text with sorted imports, formatted. */
function tidy(ruff, text) {
  const sorting = ruff.check(text).filter((d) => d.code === "I001" && d.fix);
  return ruff.format(sorting.reverse().reduce((t, d) => d.fix.edits.reduce(edited, t), text));
}

let faults = 0;
for (const file of files) {
  const ruff = workspaceOf(file);
  let text = readFileSync(file, "utf8");
  const formatted = tidy(ruff, text);
  if (formatted !== text) {
    if (process.argv.includes("--write")) writeFileSync(file, (text = formatted));
    else {
      faults++;
      console.log(`${file}: not formatted: run "npm run format" in sdk/python`);
    }
  }
  for (const d of ruff.check(text)) {
    faults++;
    console.log(`${file}:${d.start_location.row}:${d.start_location.column}: ${d.code} ${d.message}`);
  }
}
console.log(`ruff ${Workspace.version()}: ${files.length} files, ${faults} faults`);
process.exitCode = faults ? 1 : 0;
