import { spawn } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WaggleClient } from "@waggle-dev/client";
import { type BuildOptions, build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { up, type Waggle, within } from "../../sdk/typescript/testing/server.js";
import { sources } from "../../sdk/typescript/testing/sources.js";

// The examples that need no browser, and that the pages of the others can be built.

const root = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(root, "examples/dist");

let waggle: Waggle;

beforeAll(async () => {
  await mkdir(dist, { recursive: true });
  waggle = await up();
});
afterAll(() => waggle?.end());

const forNode: BuildOptions = { bundle: true, platform: "node", format: "esm", alias: sources, external: ["ws"] };

test("waggle new --template typescript-agent: the agent does a step of a plan with the help of its tool", async () => {
  const outfile = join(dist, "agent.mjs");
  await build({ ...forNode, entryPoints: [join(root, "cmd/waggle/project/templates/typescript-agent/agent.ts")], outfile });
  const agent = spawn("node", [outfile], {
    cwd: root,
    env: { ...process.env, WAGGLE_URL: waggle.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((go) => agent.once("exit", go));
  await within(new Promise<void>((go) => agent.stdout.on("data", (b) => String(b).includes("at work") && go())), "the agent");
  const client = new WaggleClient({ url: waggle.url, WebSocket });
  const run = client.session().send("ask shouting to greet the bees", { mode: "plan" });
  expect((await within(run.result(), "the answer")).text).toContain("GREET THE BEES!");
  client.close();
  agent.kill("SIGTERM");
  expect(await within(ended, "the end of the agent")).toBe(0);
});

test("README: the quickstart has ten lines and answers", async () => {
  const readme = await readFile(join(root, "sdk/typescript/README.md"), "utf8");
  const code = /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  expect(code.trim().split("\n").length).toBeLessThanOrEqual(10);
  const outfile = join(dist, "quickstart.mjs");
  const contents = code.replace("http://127.0.0.1:9000", waggle.url);
  await build({ ...forNode, stdin: { contents, resolveDir: join(root, "examples") }, outfile });
  const node = spawn("node", [outfile], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  node.stdout.on("data", (b) => {
    out += b;
  });
  expect(await within(new Promise((go) => node.once("exit", go)), "the quickstart")).toBe(0);
  expect(out).toContain("plan.completed");
  expect(out).toContain("buy milk");
});

test("README: its client answers", async () => {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const outfile = join(dist, "readme.mjs");
  const contents = (/```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? "").replace("http://127.0.0.1:9000", waggle.url);
  expect(contents).toContain(waggle.url);
  await build({ ...forNode, stdin: { contents, resolveDir: join(root, "examples"), loader: "ts" }, outfile });
  const node = spawn("node", [outfile], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  node.stdout.on("data", (b) => {
    out += b;
  });
  expect(await within(new Promise((go) => node.once("exit", go)), "the client")).toBe(0);
  expect(out).toContain("buy milk");
});

test("waggle new --template chat-page: the page can be built", async () => {
  const entryPoints = [join(root, "cmd/waggle/project/templates/chat-page/src/main.tsx")];
  const { outputFiles } = await build({
    entryPoints,
    bundle: true,
    format: "esm",
    jsx: "automatic",
    alias: { ...sources, ai: join(root, "examples/node_modules/ai") }, // the release that the template names
    write: false,
    outdir: "out",
  });
  expect(outputFiles.map((f) => f.text).join("")).toContain("what does notes.md say?");
});

test("react-chat: its page can be built", async () => {
  const entryPoints = [join(root, "examples/react-chat/src/main.tsx")];
  const { outputFiles } = await build({ entryPoints, bundle: true, format: "esm", jsx: "automatic", alias: sources, write: false });
  expect(outputFiles[0]?.text).toContain("Carry the changed plan out");
});
