import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, Site } from "../../testing/browser.js";
import { freePort, Line, Model, maxWait, type Reply, up, type Waggle } from "../../testing/server.js";
import { html, type Major, majors, pageOf } from "./site.js";

// The real useChat of both majors in Chromium, with a real gateway and a model that answers as the messages ask.

const words = (n: number) => Array.from({ length: n }, (_, i) => `w${i + 1}`).join(" ");
const long = words(60);

/** What the scripted model says. A slow answer takes about 6 s: long enough to reload in its middle. */
function script(messages: { role: string; content: unknown }[]): Reply {
  const last = messages.at(-1);
  const text = String(messages.filter((m) => m.role === "user").at(-1)?.content);
  if (last?.role === "tool") return { text: "All is done." };
  if (text.includes("slowly")) return { text: long, pauseMs: 100 };
  if (text.includes("two files"))
    return { calls: ["a.txt", "b.txt"].map((path) => ({ name: "workspace_write_file", args: { path, content: path } })) };
  if (text.includes("write")) return { calls: [{ name: "workspace_write_file", args: { path: "todo.txt", content: "milk" } }] };
  if (text.includes("paint")) return { calls: [{ name: "paint", args: { color: "red" } }] };
  if (text.includes("fail")) return { status: 400 };
  return { text: `You said: ${text}` };
}

let model: Model;
let waggle: Waggle;
let line: Line;
let site: Site;
let browser: Browser;
let chats = 0;

beforeAll(async () => {
  const texts: Record<string, string> = {};
  for (const major of Object.keys(majors) as Major[]) {
    texts[`/${major}/`] = html(`/${major}/page.js`);
    texts[`/${major}/page.js`] = await pageOf(major);
  }
  site = await Site.start({}, texts, await freePort());
  model = await Model.start(script);
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`, { ...model.env, WAGGLE_TOOLS_BUILTIN_APPROVAL: "writes" });
  line = await Line.to(waggle.url);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  site?.end();
  line?.end();
  await waggle?.end();
  model?.end();
});

const fresh = (major: string) => `chat-${major}-${++chats}`;
const address = (major: string, chat: string, more = "") =>
  `${site.origin}/${major}/?url=${encodeURIComponent(line.url)}&chat=${chat}${more}`;

async function say(page: Page, text: string): Promise<void> {
  await page.fill("input", text);
  await page.click("text=Send");
}

const textOf = (page: Page) => page.locator(".assistant .text").allTextContents();
const ready = (page: Page) => page.waitForSelector("main[data-status=ready]", { timeout: maxWait });
const shows = (page: Page, text: string) =>
  page.waitForFunction((t) => document.querySelector("main")?.textContent?.includes(t), text, { timeout: maxWait });

describe.each(Object.keys(majors))("ai %s", (major) => {
  test.each(["", "&stock"])("an answer comes, and a reload in its middle shows every word once%s", async (more) => {
    const chat = fresh(major);
    const { page, errors } = await open(browser, address(major, chat, more));
    await say(page, "count slowly");
    await shows(page, "w10 ");
    await page.reload();
    await shows(page, "w20 ");
    const second = await open(browser, address(major, chat, more));
    await shows(second.page, "w60");
    await ready(second.page);
    await ready(page);
    for (const p of [page, second.page]) {
      expect(await textOf(p)).toEqual([long]);
      expect(await p.locator("section").count()).toBe(2);
    }
    await say(page, "hello");
    await shows(page, "You said: hello");
    expect(errors).toEqual([]);
    await page.close();
    await second.page.close();
  });
});
