// The size of the core's bundle for browsers, which a page has to load.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const limit = 12 * 1024;
const entry = new URL("../client/dist/index.js", import.meta.url).pathname;
const { outputFiles, metafile } = await build({
  entryPoints: [entry],
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  write: false,
  metafile: true,
});
const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length;
const parts = Object.entries(Object.values(metafile.outputs)[0].inputs).sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput);
for (const [name, p] of parts) console.log(`${String(p.bytesInOutput).padStart(6)}  ${name}`);
console.log(`core for browsers: ${outputFiles[0].contents.length} bytes, ${bytes} bytes gzip (limit ${limit})`);
process.exitCode = bytes > limit ? 1 : 0;
