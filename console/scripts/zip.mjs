// Compresses the console's files as the gateway sends them: the binary embeds no other form. Argument: their folder.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

// The size in bytes below which a file is not compressed.
const smallest = 1024;

const folder = process.argv[2];
for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  const path = join(file.parentPath, file.name);
  if (!file.isFile() || /\.(gz|woff2)$/.test(path)) continue;
  const plain = readFileSync(path);
  if (plain.length < smallest) continue;
  writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
  rmSync(path);
}
