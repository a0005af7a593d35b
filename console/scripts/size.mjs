// What the first load of the console takes: all scripts and styles, compressed as the gateway sends them.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 110 * 1024;
const folder = new URL("../dist/assets/", import.meta.url);
let sum = 0;
for (const name of readdirSync(folder)) {
  const bytes = gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length;
  sum += bytes;
  console.log(`${String(bytes).padStart(7)}  ${name}`);
}
console.log(`console: ${sum} bytes gzip (limit ${limit})`);
process.exitCode = sum > limit ? 1 : 0;
