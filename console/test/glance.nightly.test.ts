import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { stage, visit } from "./page.ts";

// A log that is opened at a moment of its past shows it at once, as the server has folded it, while its events are still on
// their way. What the page shows where the two differ is in reading.test.ts.

const on = stage();

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${on.waggle.url}/api/v1${path}`, {
    method,
    ...(body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** Waits until a log has a number of ends of runs, and returns its last event. */
async function over(kind: string, id: string, runs: number): Promise<number> {
  for (;;) {
    const page = await api<{ events: { sequence: number; type: string; data: { event?: { type: string } } }[] }>(
      "GET",
      `/logs/${kind}/${id}/events?limit=1000`,
    ).catch(() => ({ events: [] }));
    const ends = page.events.filter((e) => (e.data.event ?? e).type === "run.completed");
    if (ends.length >= runs) return ends[runs - 1]?.sequence ?? 0;
    await new Promise((go) => setTimeout(go, 100));
  }
}

/** A session with two runs, and the end of the first one. */
async function talked(): Promise<{ id: string; at: number }> {
  const { session_id: id } = await api<{ session_id: string }>("POST", "/sessions", {});
  await api("POST", `/sessions/${id}/messages`, { content: "Which files are in the workspace?" });
  const at = await over("session", id, 1);
  await api("POST", `/sessions/${id}/messages`, { content: "And what does notes.md say?" });
  await over("session", id, 2);
  return { id, at };
}

/** Holds the pages of the log back until it is told to let them through. */
async function held(page: Page): Promise<() => Promise<void>> {
  const waiting: Route[] = [];
  let open = false;
  await page.route(/\/api\/v1\/logs\/.*\/events\?/, (r) => {
    if (open) return r.continue();
    waiting.push(r);
    return undefined;
  });
  return async () => {
    open = true;
    await Promise.all(waiting.map((r) => r.continue()));
  };
}

const items = (page: Page) => page.locator(".item").allTextContents();

/** Lets the events of a log arrive, and checks that the page shows the same items as of an event as before. */
async function same(page: Page, at: number, before: string[], release: () => Promise<void>): Promise<void> {
  const read = page.waitForResponse(/\/events\?/);
  await release();
  await read;
  // One back is made of events only: then all of them are here.
  await page.focus(".scrubber input");
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((seq) => location.search.includes(`at=${seq}`), at - 1);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((n) => document.querySelectorAll(".item").length === n, before.length);
  expect(await items(page)).toEqual(before);
}

test("a session at a moment of its past is there before its events, and its events change nothing", async () => {
  const { id, at } = await talked();
  const { page, errors } = await visit(on.browser, "about:blank");
  const release = await held(page);
  await page.goto(`${on.waggle.url}/sessions/${id}?at=${at}`);
  await page.waitForSelector(".session.past .item.answer");
  const before = await items(page);
  expect(before.join()).toContain("Which files are in the workspace?");
  expect(before.join()).not.toContain("notes.md say");
  const first = await page.evaluateHandle(() => document.querySelector(".item"));
  await same(page, at, before, release);
  expect(await first.evaluate((e) => e?.isConnected)).toBe(true);
  expect(errors).toEqual([]);
  await page.close();
});

test("a team and each of its members at a moment of the past are there before their events", async () => {
  const { team_id: id } = await api<{ team_id: string }>("POST", "/teams", {
    name: "pair",
    coordinator: "Lead",
    members: [{ name: "Lead", role: "leads" }, { name: "Writer" }],
  });
  await api("POST", `/teams/${id}/messages`, { content: "hello team" });
  const at = await over("team", id, 1);
  await api("POST", `/teams/${id}/messages`, { content: "hello again" });
  await over("team", id, 2);
  const { page, errors } = await visit(on.browser, "about:blank");
  const release = await held(page);
  await page.goto(`${on.waggle.url}/teams/${id}?at=${at}&member=Lead`);
  await page.waitForSelector(".session.past .item.answer");
  const before = await items(page);
  expect(before.join()).toContain("hello team");
  expect(before.join()).not.toContain("hello again");
  expect(await page.locator('[role="treeitem"]').count()).toBeGreaterThanOrEqual(2);
  await same(page, at, before, release);
  expect(errors).toEqual([]);
  await page.close();
});
