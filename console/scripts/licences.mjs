// Writes the licences of what the console's files contain besides our own code. Argument: their folder.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const modules = new URL("../../node_modules/", import.meta.url);
const parts = ["preact", "@preact/signals", "@preact/signals-core", "streaming-markdown", "oauth4webapi", "@fontsource-variable/inter"];
const texts = parts.map((name) => {
  const folder = new URL(`${name}/`, modules);
  const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(new URL(file, folder), "utf8").trim()}\n`;
});
writeFileSync(join(process.argv[2], "LICENSES.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
