import { execFileSync } from "node:child_process";
import { cp, lstat, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

// The examples outside of the repository, as somebody would take them.

const examples = fileURLToPath(new URL("..", import.meta.url));
let folder: string;
const run = (cwd: string, ...args: string[]) => execFileSync("npm", args, { cwd, stdio: ["ignore", "ignore", "inherit"] });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waggle-alone-"));
  run(join(examples, "../sdk/typescript"), "run", "-s", "packs");
  await cp(join(examples, "packs"), join(folder, "packs"), { recursive: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function bytes(path: string): Promise<number> {
  const found = await readdir(path, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(found.filter((f) => f.isFile()).map(async (f) => (await lstat(join(f.parentPath, f.name))).size));
  return sizes.reduce((a, b) => a + b, 0);
}

test.each(["react-chat", "assistant-ui", "ai-sdk"])("%s installs alone in less than 150 MB, and is built", async (name) => {
  const at = join(folder, name);
  const own = (path: string) => !/\/(node_modules|dist)$/.test(path);
  await cp(join(examples, name), at, { recursive: true, filter: own });
  const begun = Date.now();
  run(at, "ci", "--ignore-scripts", "--no-audit", "--no-fund");
  const size = await bytes(join(at, "node_modules"));
  console.log(`${name}: ${Math.round(size / 1e6)} MB in ${Math.round((Date.now() - begun) / 1000)} s`);
  expect(size).toBeLessThan(150e6);
  run(at, "run", "build");
  expect(await readdir(join(at, "dist"))).not.toEqual([]);
});

// The packages that a template names are published with a release: here they are the packed ones.
test.each([
  [
    "typescript-agent",
    ["esbuild", "agent.ts", "--bundle", "--platform=node", "--format=esm", "--packages=external", "--outfile=dist/agent.js"],
  ],
  ["chat-page", ["vite", "build"]],
] as const)("waggle new --template %s installs, and is built", async (name, build) => {
  const at = join(folder, `new-${name}`);
  await cp(join(examples, "../cmd/waggle/project/templates", name), at, { recursive: true });
  const file = join(at, "package.json");
  const packed = (await readFile(file, "utf8")).replace(
    /"@waggle-dev\/([\w-]+)": "([^"]+)"/g,
    '"@waggle-dev/$1": "file:../packs/waggle-dev-$1-$2.tgz"',
  );
  await writeFile(file, packed);
  run(at, "install", "--ignore-scripts", "--no-audit", "--no-fund");
  run(at, "exec", "--", ...build);
  expect(await readdir(join(at, "dist"))).not.toEqual([]);
});
