// What the first load of the console takes: the scripts, styles and the font that the page names, and the worker, compressed as the gateway
// sends them. Other files are loaded when they are needed.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";

const limit = 180 * 1024;
const dist = new URL("../dist/", import.meta.url);
const small = new URL("index.html", dist);
const page = existsSync(small) ? readFileSync(small, "utf8") : gunzipSync(readFileSync(new URL("index.html.gz", dist))).toString();
const folder = new URL("assets/", dist);
let sum = 0;
for (const name of readdirSync(folder)) {
  const file = readFileSync(new URL(name, folder));
  const bytes = /\.(gz|woff2)$/.test(name) ? file.length : gzipSync(file, { level: 9 }).length;
  const first = page.includes(name.replace(/\.gz$/, "")) || name.startsWith("worker-") || name.endsWith(".woff2");
  if (first) sum += bytes;
  console.log(`${String(bytes).padStart(7)}  ${name}${first ? "" : " (later)"}`);
}
console.log(`console: ${sum} bytes gzip at first (limit ${limit})`);
process.exitCode = sum > limit ? 1 : 0;
