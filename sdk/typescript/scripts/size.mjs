// The sizes of what a page loads: the core, and what the parts for components and errors add to it.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const kib = 1024;
const file = (name) => new URL(`../client/dist/${name}.js`, import.meta.url).pathname;

/** Bundles a program and reports whether it is within its limit, in bytes of gzip. */
async function within(name, limit, input, parts = false) {
  const { outputFiles, metafile } = await build({
    ...input,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    external: ["vue", "svelte"],
    write: false,
    metafile: true,
  });
  const inputs = Object.entries(Object.values(metafile.outputs)[0].inputs).sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput);
  if (parts) for (const [path, p] of inputs) console.log(`${String(p.bytesInOutput).padStart(6)}  ${path}`);
  const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  console.log(`${name}: ${outputFiles[0].contents.length} bytes, ${bytes} bytes gzip (limit ${limit})`);
  return bytes <= limit;
}

const one = `import { SessionNotFoundError } from ${JSON.stringify(file("errors"))}; console.log(SessionNotFoundError);`;
const fits = [
  await within("core for browsers", 12 * kib, { entryPoints: [file("index")] }, true),
  await within("store", 5 * kib, { entryPoints: [file("store")] }),
  await within("vue", 4.5 * kib, { entryPoints: [file("vue")] }),
  await within("svelte", 4.5 * kib, { entryPoints: [file("svelte")] }),
  await within("one class of errors", 1.5 * kib, { stdin: { contents: one, resolveDir: "/" } }),
];
process.exitCode = fits.every(Boolean) ? 0 : 1;
