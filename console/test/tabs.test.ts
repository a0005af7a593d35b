import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { patience, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { stage } from "./page.ts";

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
  page.setDefaultTimeout(patience);
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

  // And each gets an answer to what it asks for.
  for (const t of [...tabs, list, questions]) {
    await t.click('nav a[href="/installation/health"]');
    await t.waitForSelector("main table, main dl, main .cells");
  }
  expect(errors).toEqual([]);
  await context.close();
});
