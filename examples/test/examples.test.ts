import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WaggleClient } from "@waggle-dev/client";
import { build as bundle } from "esbuild";
import type { Browser } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { launch, open, Site } from "../../sdk/typescript/testing/browser.js";
import { freePort, Line, up, type Waggle, within } from "../../sdk/typescript/testing/server.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const question = "which files are in the workspace, and what does notes.md say?";
const pictures = process.env["WAGGLE_TS_PICTURES"];

let waggle: Waggle;
let line: Line;
let site: Site;
let browser: Browser;

beforeAll(async () => {
  await build({ root: join(root, "examples/react-chat"), logLevel: "warn" });
  const port = await freePort();
  site = await Site.start(
    {
      "/examples/": join(root, "examples"),
      "/sdk/typescript/client/": join(root, "sdk/typescript/client"),
      "/react-chat/": join(root, "examples/react-chat/dist"),
    },
    {},
    port,
  );
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`);
  line = await Line.to(waggle.url);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  site?.end();
  line?.end();
  await waggle?.end();
});

async function picture(page: { screenshot(o: { path: string }): Promise<unknown> }, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

test("chat-html: asks, shows tools and the answer, and goes on after a cut line and a reload", async () => {
  const { page, errors } = await open(browser, `${site.origin}/examples/chat-html/?url=${encodeURIComponent(line.url)}`);
  await page.fill("#text", question);
  await page.click("text=Send");
  await page.waitForSelector(".answer");
  await page.waitForFunction(() => document.querySelector("main")?.textContent?.includes("buy milk"));
  line.cut();
  await page.fill("#text", "what is 6*7?");
  await page.click("text=Send");
  await page.waitForFunction(() => document.querySelector("main")?.textContent?.includes("42"));
  await picture(page, "chat-html");
  const before = await page.textContent("main");
  await page.reload();
  await page.waitForFunction((text) => document.querySelector("main")?.textContent === text, before);
  expect(await page.locator(".user").count()).toBe(2);
  expect(await page.locator(".tool").count()).toBeGreaterThan(1);
  await page.setViewportSize({ width: 390, height: 780 });
  await picture(page, "chat-html-narrow");
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(errors).toEqual([]);
  await page.close();
});

test("react-chat: a plan is changed, carried out and shown, also after a reload in the middle", async () => {
  const { page, errors } = await open(browser, `${site.origin}/react-chat/?url=${encodeURIComponent(line.url)}`);
  await page.fill("form input[aria-label=Message]", `${question} and what is 6*7?`);
  await page.click("text=Send");
  await page.waitForSelector(".question");
  await picture(page, "react-chat-question");
  line.cut();
  await page.reload();
  await page.waitForSelector(".question li");
  const steps = await page.locator(".question li").count();
  await page.click(".question li:first-child button");
  await page.fill(".question li:first-child input", "what does notes.md say, again");
  await page.click("text=Carry the changed plan out");
  await page.waitForSelector(".plan[data-status=done]");
  await page.waitForFunction(() => document.querySelectorAll(".answer").length === 1 && !document.querySelector(".question"));
  await picture(page, "react-chat-done");
  expect(await page.locator(".step[data-status=completed]").count()).toBe(steps - 1);
  expect(await page.textContent(".plan")).toContain("again");
  await page.fill("form input[aria-label=Message]", question);
  await page.click("text=Send");
  await page.waitForSelector(".question");
  await page.click(".question .reply button:nth-child(2)");
  await page.waitForSelector(".plan[data-status=cancelled]");
  await page.setViewportSize({ width: 390, height: 780 });
  await picture(page, "react-chat-narrow");
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(errors).toEqual([]);
  await page.close();
});

test("agent-typescript: the agent does a step of a plan with the help of its tool", async () => {
  const outfile = join(root, "examples/agent-typescript/dist/agent.js");
  await bundle({
    entryPoints: [join(root, "examples/agent-typescript/agent.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    outfile,
  });
  const agent = spawn("node", [outfile], {
    cwd: root,
    env: { ...process.env, WAGGLE_URL: waggle.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((go) => agent.once("exit", go));
  await within(new Promise<void>((go) => agent.stdout.on("data", (b) => String(b).includes("at work") && go())), "the agent");
  const client = new WaggleClient({ url: waggle.url, WebSocket });
  const run = client.sessions.open().send("ask shouting to greet the bees", { mode: "plan" });
  expect((await within(run.result(), "the answer")).text).toContain("GREET THE BEES!");
  client.close();
  agent.kill("SIGTERM");
  expect(await within(ended, "the end of the agent")).toBe(0);
});

test("README: the quickstart has ten lines and answers", async () => {
  const readme = await readFile(join(root, "sdk/typescript/README.md"), "utf8");
  const code = /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  expect(code.trim().split("\n").length).toBeLessThanOrEqual(10);
  const file = join(root, "examples/dist/quickstart.mjs");
  await mkdir(join(root, "examples/dist"), { recursive: true });
  await writeFile(file, code.replace("http://127.0.0.1:9000", waggle.url));
  const node = spawn("node", [file], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  node.stdout.on("data", (b) => {
    out += b;
  });
  expect(await within(new Promise((go) => node.once("exit", go)), "the quickstart")).toBe(0);
  expect(out).toContain("plan.completed");
  expect(out).toContain("buy milk");
});
