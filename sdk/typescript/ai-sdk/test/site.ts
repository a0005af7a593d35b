import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { sources } from "../../testing/sources.js";

const from = createRequire(import.meta.url);
const folder = fileURLToPath(new URL(".", import.meta.url));

/** The majors of the AI SDK, with the packages of useChat: each brings its own `ai`. */
export const majors = { "6": "ai-sdk-react-3", "7": "@ai-sdk/react" } as const;
export type Major = keyof typeof majors;

/** The folder of an installed package. */
function installed(name: string): string {
  for (const path of from.resolve.paths(name) ?? []) {
    const at = join(path, name, "package.json");
    try {
      return join(from.resolve(at), "..");
    } catch {
      // in another folder
    }
  }
  throw new Error(`${name} is not installed`);
}

/** The page of the tests with a major of the AI SDK, as bundlers make it. */
export async function pageOf(major: Major): Promise<string> {
  const react = installed(majors[major]);
  const ai = createRequire(join(react, "package.json")).resolve("ai");
  const { outputFiles } = await build({
    entryPoints: [join(folder, "page.tsx")],
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    jsx: "automatic",
    write: false,
    logLevel: "error",
    alias: { ...sources, "@ai-sdk/react": react, ai: join(ai, "../..") },
    define: { "process.env.NODE_ENV": '"production"' },
  });
  return outputFiles[0]?.text ?? "";
}

export const html = (script: string) =>
  `<!doctype html><title>useChat</title><div id="root"></div><script type="module" src="${script}"></script>`;
