import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, Site } from "../../testing/browser.js";
import { freePort, Line, Model, maxWait, type Reply, up, type Waggle } from "../../testing/server.js";
import { html, type Major, pageOf } from "./site.js";

// The real useChat of a major of the AI SDK in Chromium, with a real gateway and a model that answers as the messages ask.

const words = (n: number) => Array.from({ length: n }, (_, i) => `w${i + 1}`).join(" ");
const long = words(60);

/** What the scripted model says. A slow answer takes about 6 s: long enough to reload in its middle. */
function script(messages: { role: string; content: unknown }[]): Reply {
  const last = messages.at(-1);
  const asked = String(messages.filter((m) => m.role === "user").at(-1)?.content);
  const text = asked.split("\n").at(-1) as string; // a question without an answer precedes the next one
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

/** What useChat of a major goes through. */
export function chatTests(major: Major): void {
  beforeAll(async () => {
    site = await Site.start(
      {},
      { [`/${major}/`]: html(`/${major}/page.js`), [`/${major}/page.js`]: await pageOf(major) },
      await freePort(),
    );
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

  test("the gateway is killed in the middle of an answer: no word is lost or doubled", async () => {
    const { page, errors } = await open(browser, address(major, fresh(major)));
    await say(page, "count slowly");
    await shows(page, "w10 ");
    await waggle.restart();
    await shows(page, "w60");
    await ready(page);
    expect(await textOf(page)).toEqual([long]);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the line is cut again and again", async () => {
    const { page, errors } = await open(browser, address(major, fresh(major)));
    await say(page, "count slowly");
    for (const word of ["w5 ", "w15 ", "w25 ", "w35 "]) {
      await shows(page, word);
      line.cut();
    }
    await shows(page, "w60");
    await ready(page);
    expect(await textOf(page)).toEqual([long]);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("a call is allowed in one window, and refused too late in another; the next is refused", async () => {
    const chat = fresh(major);
    const first = await open(browser, address(major, chat));
    await say(first.page, "write it");
    await first.page.waitForSelector("text=Yes");
    const second = await open(browser, address(major, chat));
    await second.page.waitForSelector("text=No");
    await first.page.click("text=Yes");
    await shows(first.page, "All is done.");
    await second.page.click("text=No");
    await shows(second.page, "All is done.");
    for (const { page } of [first, second]) {
      await ready(page);
      expect(await page.locator(".tool").count()).toBe(1);
      expect(await page.getAttribute(".tool", "data-state")).toBe("output-available");
      expect(await textOf(page)).toEqual(["All is done."]);
    }
    await say(second.page, "write it");
    await second.page.click("text=No");
    await second.page.waitForSelector(".tool[data-state=output-denied]");
    await ready(second.page);
    await first.page.reload();
    await first.page.waitForSelector(".tool[data-state=output-denied]");
    expect([...first.errors, ...second.errors]).toEqual([]);
    await first.page.close();
    await second.page.close();
  });

  test("parallel calls are each asked about, also after a reload, and done once", async () => {
    const chat = fresh(major);
    const { page, errors } = await open(browser, address(major, chat));
    await say(page, "write two files");
    await page.waitForFunction(() => document.querySelectorAll(".tool[data-state=approval-requested]").length === 2);
    await ready(page);
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll(".tool[data-state=approval-requested]").length === 2);
    await page.locator("text=Yes").first().click();
    await page.locator("text=Yes").first().click();
    await shows(page, "All is done.");
    await ready(page);
    expect(await page.locator(".tool[data-state=output-available]").count()).toBe(2);
    expect(await page.locator(".tool").count()).toBe(2);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("a tool of the page is called, and its result goes back", async () => {
    const body = encodeURIComponent(JSON.stringify({ tools: [{ name: "paint", description: "paints", inputSchema: { type: "object" } }] }));
    const { page, errors } = await open(browser, address(major, fresh(major), `&body=${body}`));
    await say(page, "paint it");
    await shows(page, "All is done.");
    await ready(page);
    expect(await page.textContent(".tool pre")).toBe('{"painted":{"color":"red"}}');
    expect(errors).toEqual([]);
    await page.close();
  });

  test("stop stops the run for all windows, and the next message is answered", async () => {
    const chat = fresh(major);
    const { page, errors } = await open(browser, address(major, chat));
    await say(page, "count slowly");
    await shows(page, "w5 ");
    const second = await open(browser, address(major, chat));
    await shows(second.page, "w8 ");
    await page.click("text=Stop");
    await ready(page);
    await second.page.waitForSelector(".assistant[data-outcome=cancelled]");
    await ready(second.page);
    expect(await second.page.textContent("main")).not.toContain("w60");
    await say(page, "hello");
    await shows(page, "You said: hello");
    expect([...errors, ...second.errors]).toEqual([]);
    await page.close();
    await second.page.close();
  });

  test("a failure is told, and an answer is made again", async () => {
    const { page } = await open(browser, address(major, fresh(major)));
    await say(page, "fail");
    await page.waitForSelector(".error");
    await say(page, "hello");
    await shows(page, "You said: hello");
    await ready(page);
    await page.click("text=Again");
    await page.waitForFunction(() => document.querySelector("main")?.getAttribute("data-status") === "ready");
    await shows(page, "You said: hello");
    expect(await page.locator(".error").count()).toBe(0);
    await page.close();
  });
}
