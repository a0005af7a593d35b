import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, Site } from "../../sdk/typescript/testing/browser.js";
import { freePort, Line, maxWait, up, type Waggle } from "../../sdk/typescript/testing/server.js";

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
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`, { WAGGLE_TOOLS_BUILTIN_APPROVAL: "writes" });
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
  await page.fill("form input[aria-label=Message]", "write buy milk to todo.txt");
  await page.click("text=Send");
  await page.waitForSelector(".question li");
  await page.click(".question .reply button.main");
  await page.waitForSelector(".question pre"); // a call has no steps that could be changed, whatever else is typed
  await page.fill(".question .reply input", "fine");
  expect(await page.textContent(".question .reply button.main")).toBe("Yes");
  await page.click(".question >> text=Edit");
  await page.fill(".question textarea", '{ "path": 7 }');
  await page.click(".question .reply button.main");
  await page.waitForSelector(".end >> text=/path");
  await page.waitForFunction(() => {
    const bottom = (e: Element | undefined | null) => e?.getBoundingClientRect().bottom ?? 0;
    return bottom([...document.querySelectorAll(".end")].at(-1)) <= bottom(document.querySelector("main")); // people see it
  });
  await picture(page, "react-chat-refused");
  await page.fill(".question textarea", '{ "path": "other.txt", "content": "tea" }');
  await page.click(".question .reply button.main");
  await page.waitForFunction(() => !document.querySelector(".question"));
  const written = () => readFile(join(waggle.option("--workspace"), "other.txt"), "utf8").catch(() => "");
  await expect.poll(written, { timeout: maxWait }).toBe("tea");
  await page.setViewportSize({ width: 390, height: 780 });
  await picture(page, "react-chat-narrow");
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(errors).toEqual([]);
  await page.close();
});

test("assistant-ui: Vite builds its page", async () => {
  await build({ root: join(root, "examples/assistant-ui"), logLevel: "error" });
  expect(await readdir(join(root, "examples/assistant-ui/dist"))).toContain("index.html");
});
