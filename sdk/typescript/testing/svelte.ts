import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";
import { compile } from "svelte/compiler";
import { sources } from "./sources.js";

/**
 * Compiles and bundles a component of Svelte into a module without imports, for a page or for a server that renders it.
 * It exports `component` and the function that shows it: `mount` or `render`.
 */
export async function svelteModule(source: string, generate: "client" | "server"): Promise<string> {
  const resolveDir = dirname(fileURLToPath(import.meta.url));
  const contents = compile(source, { generate }).js.code;
  const component: Plugin = {
    name: "component",
    setup(b) {
      b.onResolve({ filter: /^component$/ }, () => ({ path: "component", namespace: "component" }));
      b.onLoad({ filter: /./, namespace: "component" }, () => ({ contents, resolveDir }));
    },
  };
  const show = generate === "client" ? `export { mount } from "svelte"` : `export { render } from "svelte/server"`;
  const bundle = await build({
    stdin: { contents: `${show}; export { default as component } from "component";`, resolveDir },
    plugins: [component],
    bundle: true,
    format: "esm",
    platform: generate === "client" ? "browser" : "node",
    alias: sources,
    write: false,
  });
  return bundle.outputFiles[0]?.text ?? "";
}
