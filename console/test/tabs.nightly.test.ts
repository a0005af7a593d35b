import { createHash } from "node:crypto";
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { HoldingProxy } from "../../sdk/typescript/testing/proxy.ts";
import { maxWait, up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { removals, stage } from "./page.ts";

// Tabs of one browser, which share the connections that it has to the gateway.

const on = stage();

async function post<T>(waggle: Waggle, path: string, body: unknown, key = ""): Promise<T> {
  const answer = await fetch(`${waggle.url}/api/v1${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

const soon = { timeout: maxWait };
let messages = 0;

const say = (waggle: Waggle, session: string, content: string, more: object = {}, key = "") =>
  post(waggle, `/sessions/${session}/messages`, { id: `m${++messages}-${session}`, content, ...more }, key);

/** A new session with a message. */
async function session(waggle: Waggle, content: string, key = ""): Promise<string> {
  const { session_id } = await post<{ session_id: string }>(waggle, "/sessions", {}, key);
  await say(waggle, session_id, content, {}, key);
  return session_id;
}

/** Opens one more tab of a browser, and collects the errors that it reports. */
async function tab(context: BrowserContext, url: string, errors: string[]): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(maxWait);
  page.on("pageerror", (e) => errors.push(String(e)));
  await page.goto(url);
  return page;
}

/** How many streams of events browsers have open. */
async function streams(waggle: Waggle): Promise<number> {
  const metrics = await (await fetch(`http://${waggle.option("--telemetry-addr")}/metrics`)).text();
  return Number(/^waggle_gateway_connections\{dialect="events"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

const shows = (page: Page, text: string) => page.waitForFunction((t) => document.querySelector("main")?.textContent?.includes(t), text);

test("tabs behind a proxy that holds answers back are live all the same", async () => {
  const proxy = await HoldingProxy.to(on.waggle.url);
  const context = await on.browser.newContext({ viewport: { width: 1300, height: 850 } });
  try {
    const errors: string[] = [];
    const id = await session(on.waggle, "say number 1");
    const list = await tab(context, `${proxy.url}/sessions`, errors);
    const page = await tab(context, `${proxy.url}/sessions/${id}`, errors);
    await shows(page, "say number 1");
    await list.waitForSelector(".sessions .row");
    await expect.poll(() => proxy.idle, soon).toBe(false);
    await say(on.waggle, id, "say number 2");
    await page.waitForFunction(() => document.querySelectorAll(".talk .item.answer").length === 2);
    await session(on.waggle, "say something new");
    await shows(list, "say something new");
    proxy.cut();
    await say(on.waggle, id, "say number 3");
    await page.waitForFunction(() => document.querySelectorAll(".talk .item.answer").length === 3);
    expect(errors).toEqual([]);
  } finally {
    await context.close();
    proxy.end();
  }
});

test("eight tabs of one browser are all live, and their requests are answered", async () => {
  const context = await on.browser.newContext({ viewport: { width: 1300, height: 850 } });
  const errors: string[] = [];
  const sessions = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => session(on.waggle, `say number ${n}`)));
  const tabs: Page[] = [];
  for (const [n, id] of sessions.entries()) {
    tabs.push(await tab(context, `${on.waggle.url}/sessions/${id}`, errors));
    await shows(tabs[n] as Page, `say number ${n + 1}`);
  }
  const [list, questions] = [
    await tab(context, `${on.waggle.url}/sessions`, errors),
    await tab(context, `${on.waggle.url}/questions`, errors),
  ];
  await list.waitForSelector(".sessions .row");
  await shows(questions, "Nothing waits for you");
  await Promise.all(tabs.map((t) => t.waitForSelector(".item.answer")));

  // Each tab shows what happens, without a click.
  await Promise.all(sessions.map((id, n) => say(on.waggle, id, `say again ${n}`)));
  await Promise.all(
    tabs.map((t, n) =>
      t.waitForFunction(
        (n) =>
          document.querySelectorAll(".talk .item.answer").length === 2 &&
          document.querySelector(".talk")?.textContent?.includes(`say again ${n}`),
        n,
      ),
    ),
  );
  const seventh = await session(on.waggle, "say number 7");
  await shows(list, "say number 7");
  await say(on.waggle, seventh, "List the files in the workspace, then count the words of notes.md", { mode: "plan", confirm_plan: true });
  await questions.waitForSelector(".cards .question");
  await Promise.all([list, ...tabs].map((t) => t.waitForFunction(() => document.title.startsWith("(1)"))));

  // And each gets an answer to what it asks for: one connection of six is taken.
  await expect.poll(() => streams(on.waggle), soon).toBe(1);
  for (const t of [...tabs, list, questions]) {
    await t.click('nav a[href="/installation/health"]');
    await t.waitForSelector("main .cells, main dl, main table:not(.minutes)");
  }
  expect(errors).toEqual([]);
  await context.close();
  await expect.poll(() => streams(on.waggle), soon).toBe(0);
});

test("tabs of different people share nothing, and those of one person a stream, whatever their tokens are", async () => {
  const sha = (key: string) => createHash("sha256").update(key).digest("hex");
  const waggle = await up(`auth:
  api_keys:
    - {id: ann, sha256: ${sha("key-of-ann")}, tenant: acme, roles: [user]}
    - {id: bob, sha256: ${sha("key-of-bob")}, tenant: other, roles: [user]}
`);
  const context = await on.browser.newContext();
  const errors: string[] = [];
  const signIn = async (key: string) => {
    const page = await tab(context, `${waggle.url}/sessions`, errors);
    await page.fill('dialog input[type="password"]', key);
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    return page;
  };
  const [first, second, bob] = [await signIn("key-of-ann"), await signIn("key-of-ann"), await signIn("key-of-bob")];
  await expect.poll(() => streams(waggle), soon).toBe(2);
  const anns = await session(waggle, "say hello to ann", "key-of-ann");
  await Promise.all([first, second].map((t) => shows(t, "say hello to ann")));
  await session(waggle, "say hello to bob", "key-of-bob");
  await shows(bob, "say hello to bob");
  for (const t of [first, second]) expect(await t.textContent("main")).not.toContain("bob");
  expect(await bob.textContent("main")).not.toContain("ann");

  // A tab that ends takes nothing from the others.
  await second.click(".sessions .row");
  await second.waitForSelector(".item.answer");
  await first.close();
  await say(waggle, anns, "say more", {}, "key-of-ann");
  await second.waitForFunction(() => document.querySelectorAll(".item.answer").length === 2);
  await expect.poll(() => streams(waggle), soon).toBe(2);
  await bob.close();
  await expect.poll(() => streams(waggle), soon).toBe(1);
  expect(errors).toEqual([]);
  await context.close();
  await waggle.end();
});

test.each(["a browser without shared workers", "a shared worker that does not start"])(
  "%s: each tab has a stream of its own",
  async (what) => {
    const context = await on.browser.newContext();
    await context.addInitScript((none) => {
      class Broken extends EventTarget {
        readonly port = new MessageChannel().port1;
        constructor() {
          super();
          setTimeout(() => this.dispatchEvent(new Event("error")));
        }
      }
      if (none) Reflect.deleteProperty(window, "SharedWorker");
      else Object.assign(window, { SharedWorker: Broken });
    }, what.includes("without"));
    const errors: string[] = [];
    const id = await session(on.waggle, "say one");
    const [talk, list] = [
      await tab(context, `${on.waggle.url}/sessions/${id}`, errors),
      await tab(context, `${on.waggle.url}/sessions`, errors),
    ];
    await talk.waitForSelector(".item.answer");
    await list.waitForSelector(".sessions .row");
    await expect.poll(() => streams(on.waggle), soon).toBe(2);
    await say(on.waggle, id, "say two");
    await talk.waitForFunction(() => document.querySelectorAll(".item.answer").length === 2);
    await session(on.waggle, `say that it is ${what}`);
    await shows(list, `say that it is ${what}`);
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("a tab that nobody sees ends its topics and goes on where it was; one of them tells of questions", async () => {
  const context = await on.browser.newContext();
  await context.addInitScript(() => {
    const w = window as unknown as { away: boolean };
    w.away = location.hash === "#away";
    Object.defineProperty(document, "visibilityState", { get: () => (w.away ? "hidden" : "visible") });
  });
  const see = (page: Page, seen: boolean) =>
    page.evaluate((seen) => {
      Object.assign(window, { away: !seen });
      document.dispatchEvent(new Event("visibilitychange"));
    }, seen);
  const errors: string[] = [];
  const [one, two] = [await session(on.waggle, "say one"), await session(on.waggle, "say two")];
  const tabs: Page[] = [];
  for (const id of [one, two]) {
    const t = await tab(context, "about:blank", errors);
    await t.clock.install();
    await t.goto(`${on.waggle.url}/sessions/${id}`);
    await t.waitForSelector(".item.answer");
    await t.waitForSelector(".connection.up");
    tabs.push(t);
  }
  const [teller, other] = tabs as [Page, Page];
  await say(on.waggle, two, "say more");
  await other.waitForFunction(() => document.querySelectorAll(".item.answer").length === 2);
  const removed = await removals(other, ".talk", ".item");
  const open = (await (await fetch(`${on.waggle.url}/api/v1/questions`)).json()).questions.length;
  const count = `(${open + 1})`;
  for (const t of tabs) {
    await see(t, false);
    await t.clock.fastForward(31_000);
  }
  await say(on.waggle, two, "List the files in the workspace, then count the words of notes.md", { mode: "plan", confirm_plan: true });
  await teller.waitForFunction((n) => document.title.startsWith(n), count);
  expect(await other.locator(".item.user").count()).toBe(2);
  expect(await other.title()).not.toContain(count);
  await see(other, true);
  await other.waitForSelector(".talk .question");
  await other.waitForFunction((n) => document.title.startsWith(n), count);
  expect(await other.locator(".item.user").count()).toBe(3);
  expect(await removed()).toBe(0);

  // One that opens where nobody sees it waits, too.
  const third = await tab(context, `${on.waggle.url}/sessions/${one}#away`, errors);
  await third.waitForSelector(".item.answer");
  await say(on.waggle, one, "say once more");
  const answered = `${on.waggle.url}/api/v1/logs/session/${one}/events?types=run.completed`;
  await expect.poll(async () => (await (await fetch(answered)).json()).events.length, soon).toBe(2);
  expect(await third.locator(".item.user").count()).toBe(1);
  await see(third, true);
  await third.waitForFunction(() => document.querySelectorAll(".item.answer").length === 2);

  // A page that its browser keeps while another is shown has left, and comes back.
  const pass = (name: string) => third.evaluate((n) => dispatchEvent(new PageTransitionEvent(n, { persisted: true })), name);
  await pass("pagehide");
  await say(on.waggle, one, "say it a last time");
  await expect.poll(async () => (await (await fetch(answered)).json()).events.length, soon).toBe(3);
  expect(await third.locator(".item.user").count()).toBe(2);
  await pass("pageshow");
  await third.waitForFunction(() => document.querySelectorAll(".item.answer").length === 3);
  expect(errors).toEqual([]);
  await context.close();
});
