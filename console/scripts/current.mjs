// Checks that the committed files are what the sources make: it builds them anew, elsewhere, and compares their contents. Versions of
// zlib compress the same bytes differently.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const committed = fileURLToPath(new URL("../dist", import.meta.url));
const built = mkdtempSync(join(tmpdir(), "waggle-console-"));
const run = (...args) => execFileSync(process.execPath, args, { stdio: "inherit" });
const contents = (path) => (path.endsWith(".gz") ? gunzipSync(readFileSync(path)) : readFileSync(path));
const files = (folder) =>
  new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((f) => f.isFile())
      .map((f) => join(f.parentPath, f.name))
      .map((path) => [path.slice(folder.length + 1), contents(path).toString("base64")]),
  );
try {
  run(
    fileURLToPath(new URL("../node_modules/vite/bin/vite.js", import.meta.url)),
    "build",
    "--logLevel",
    "warn",
    "--outDir",
    built,
    "--emptyOutDir",
  );
  run(fileURLToPath(new URL("licences.mjs", import.meta.url)), built);
  run(fileURLToPath(new URL("zip.mjs", import.meta.url)), built);
  const [old, now] = [files(committed), files(built)];
  const stale = [...new Set([...old.keys(), ...now.keys()])].filter((name) => old.get(name) !== now.get(name));
  for (const name of stale) console.error(`console/dist/${name} is not what the sources make: run "make console", and commit`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} finally {
  rmSync(built, { recursive: true, force: true });
}
