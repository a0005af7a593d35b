import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type CanonicalEvent, type LogPage, type Snapshot, WaggleClient } from "@waggle-dev/client";
import { ViewBuilder, type ViewItem } from "@waggle-dev/client/view";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open } from "../../sdk/typescript/testing/browser.ts";
import { Model, maxWait, type Reply, up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { BarsBuilder } from "../src/fold/bars.ts";
import { trace } from "../src/fold/trace.ts";
import { Tap } from "../src/live/tap.ts";
import { agrees } from "../src/log/image.ts";
import { Keeper } from "../src/log/keeper.ts";
import type { Report } from "../src/log/protocol.ts";
import { emptyState, type State } from "../src/log/states.ts";
import { Conversation } from "../src/model/conversation.ts";
import { Requests } from "./requests.ts";
import { Trace } from "./trace.ts";

// One session of 50,000 events beside 10,000 others, in the real binary: what the page reads, holds and shows of it. Times are
// printed: they depend on the machine. The bounds hold on every machine.

const events = Number(process.env["WAGGLE_LONG_EVENTS"] ?? 50_000);
const snapshots = Number(process.env["WAGGLE_LONG_SNAPSHOTS"] ?? 300);
const sessions = Number(process.env["WAGGLE_LONG_SESSIONS"] ?? 10_000);

const mostElements = 1500;
const mostRows = 120;

let browser: Browser;
let waggle: Waggle;
let model: Model;
/** The long log, as the API has it. */
let log: CanonicalEvent[];

const run = promisify(execFile);
const lab = fileURLToPath(new URL("../../e2e/lab", import.meta.url));

/** A model that reads a file, plans three steps, or talks, as it is told. */
function script(messages: { role: string; content: unknown }[], planning: boolean): Reply {
  const last = messages.at(-1);
  const asked = String(messages.findLast((m) => m.role === "user")?.content ?? "");
  if (planning) {
    const tasks = [1, 2, 3].map((n) => ({
      id: `task_${n}`,
      title: `Part ${n}`,
      description: `Do part ${n}`,
      dependencies: n === 3 ? ["task_1"] : [],
      priority: 0,
      capability: "",
    }));
    return { text: JSON.stringify({ reasoning: "Three parts.", summary: "Three parts.", tasks }) };
  }
  if (last?.role === "tool") return { text: "The file says: **buy milk**.\n\n- one\n- two\n\n```\ncode\n```" };
  if (asked.includes("notes.md")) return { calls: [{ name: "workspace_read_file", args: { path: "notes.md" } }] };
  const [, words] = /say (\d+) words/.exec(asked) ?? [];
  const text = Array.from({ length: Number(words ?? 12) }, (_, i) => `word${i} `).join("");
  return { text, ...(words ? { pauseMs: 2 } : {}) };
}

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${waggle.url}/api/v1${path}`, {
    method,
    ...(body ? { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

const page = (id: string, query: string) => api<LogPage & { events: CanonicalEvent[] }>("GET", `/logs/session/${id}/events?${query}`);

/** Has a real session with the messages, each with its whole run. */
async function talk(...messages: { content: string; mode?: string }[]): Promise<string> {
  const { session_id: id } = await api<{ session_id: string }>("POST", "/sessions", {});
  const client = new WaggleClient({ url: waggle.url });
  const session = client.session(id);
  for (const m of messages) await session.send(m.content, { mode: m.mode === "plan" ? "plan" : "chat" }).result();
  client.close();
  return id;
}

beforeAll(async () => {
  model = await Model.start(script);
  const unlimited = ["TENANT_SESSIONS", "PRINCIPAL_SESSIONS", "TENANT_TOKENS", "PRINCIPAL_TOKENS"].map((q) => [`WAGGLE_QUOTA_${q}`, "-1"]);
  [browser, waggle] = await Promise.all([
    launch("--enable-blink-features=ForceEagerMeasureMemory"),
    up("", { ...model.env, ...Object.fromEntries(unlimited) }),
  ]);
  const began = Date.now();
  const fill = join(waggle.dir, "fill");
  const [long, short] = await Promise.all([
    talk(
      { content: "what does notes.md say?" },
      { content: "say 60 words" },
      { content: "three parts", mode: "plan" },
      { content: "and again notes.md" },
    ),
    talk({ content: "hello" }),
    run(process.env["GO"] ?? "go", ["build", "-o", fill, "./growth/fill"], { cwd: lab }),
  ]);
  const of = ["-nats", waggle.option("--nats-addr"), "-data", waggle.option("--data")];
  await Promise.all([
    run(fill, [...of, "-learn", long, "-long", "long", "-events", String(events)]),
    run(fill, [...of, "-learn", short, "-sessions", String(sessions)]),
  ]);
  const { last } = await api<{ last: number }>("GET", "/logs/session/long/head");
  log = [];
  for (let after = 0; after < last; after += 2000) {
    const two = [after, after + 1000].filter((n) => n < last).map((n) => page("long", `after=${n}&limit=1000`));
    log.push(...(await Promise.all(two)).flatMap((p) => p.events));
  }
  expect(log.map((e) => e.sequence)).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  console.log(`${log.length} events and ${sessions} sessions in ${Date.now() - began} ms`);
});
afterAll(async () => {
  await browser?.close();
  await waggle?.end();
  model?.end();
});

interface Watched extends Window {
  painted: number;
}

/** Opens a page that notes when its first item or row is painted. */
async function visit(path: string): Promise<{ p: Page; errors: string[]; requests: Requests }> {
  const { page: p, errors } = await open(browser, "about:blank");
  p.setDefaultTimeout(maxWait);
  await p.setViewportSize({ width: 1300, height: 850 });
  await p.addInitScript(() => {
    const w = window as unknown as Watched;
    w.painted = 0;
    const look = () => {
      if (!w.painted && document.querySelector(".view .item, .view .row .type")) w.painted = performance.now();
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const requests = new Requests(p, waggle.url);
  await p.goto(waggle.url + path);
  return { p, errors, requests };
}

const count = (p: Page, selector: string) => p.locator(selector).count();

/** Checks that the page is small. */
async function small(p: Page, what: string): Promise<void> {
  const elements = await count(p, "*");
  expect(elements, `elements: ${what}`).toBeLessThanOrEqual(mostElements);
  for (const list of await p.locator(".rows").all())
    expect(await list.locator(".row").count(), `rows: ${what}`).toBeLessThanOrEqual(mostRows);
}

/** MiB that the page and its worker hold. */
async function memory(p: Page): Promise<{ page: number; worker: number }> {
  const parts = await p.evaluate(async () => {
    const all = await (
      performance as unknown as {
        measureUserAgentSpecificMemory(): Promise<{ breakdown: { bytes: number; attribution: { scope: string }[] }[] }>;
      }
    ).measureUserAgentSpecificMemory();
    return all.breakdown.map((b) => [b.attribution[0]?.scope ?? "", b.bytes] as const);
  });
  const of = (scope: string) => parts.reduce((sum, [s, bytes]) => sum + (s === scope ? bytes : 0), 0) / 2 ** 20;
  return { page: of("Window"), worker: of("DedicatedWorkerGlobalScope") };
}

/** Scrolls the log to a part of its height, and returns the rows there. */
async function rowsAt(p: Page, part: number): Promise<[number, string][]> {
  const found = await p.waitForFunction((y) => {
    const box = document.querySelector(".log .rows") as Element;
    box.scrollTop = (box.scrollHeight - box.clientHeight) * y;
    const rows = [...box.querySelectorAll(".row")].map((r) => [
      Number(r.querySelector(".seq")?.textContent),
      r.querySelector(".type")?.textContent ?? "",
    ]);
    const there = rows.length > 10 && rows.every(([, type]) => type) && Math.abs(Number(rows[5]?.[0]) - box.scrollTop / 28) < 30;
    return there ? rows : undefined;
  }, part);
  return (await found.jsonValue()) as [number, string][];
}

/** What the items of a page or of a view are, without what only elements say. */
const kindsShown = (p: Page) =>
  p.evaluate(() =>
    [...document.querySelectorAll(".talk .item")].map((e) => {
      const kind = ["user", "answer", "tool", "plan", "end"].find((k) => e.classList.contains(k)) ?? "";
      return kind === "user" ? `user ${e.querySelector(".said")?.textContent}` : kind;
    }),
  );
const kindsOf = (items: readonly ViewItem[]) => items.map((i) => (i.kind === "user" ? `user ${i.text}` : i.kind));

/** The fold of the whole log up to each of the events, from its beginning. */
function* folds(at: readonly number[]): Generator<[number, ViewBuilder["view"]]> {
  const b = new ViewBuilder();
  let next = 0;
  for (const seq of [...at].sort((x, y) => x - y)) {
    for (; next < seq; next++) b.take(log[next] as CanonicalEvent);
    yield [seq, b.view];
  }
}

const someSeqs = (n: number) => Array.from({ length: n }, () => 1 + Math.floor(Math.random() * log.length));

test("a long session shows its newest page first, and reads the rest only for those who look there", async () => {
  const trace = await Trace.start(browser);
  const { p, errors, requests } = await visit("/sessions/long");
  await p.waitForSelector(".talk .item.user");
  await p.waitForFunction((n) => document.querySelector(".scrubber output")?.textContent?.endsWith(`/ ${n}`), log.length);
  expect(requests.paths.slice(0, 2)).toEqual(["head", `events?before=${log.length + 1}&limit=500`]);
  const [[, whole]] = [...folds([log.length])] as [[number, ViewBuilder["view"]]];
  await p.waitForFunction(() => document.querySelectorAll(".talk .item").length > 40);
  const shown = await kindsShown(p);
  expect(shown).toEqual(kindsOf(whole.items.slice(-shown.length)));
  expect(await p.textContent(".session h1")).toBe(whole.items.find((i) => i.kind === "user")?.text);
  await small(p, "a conversation");
  expect(requests.stretches).toEqual([]);
  const painted = Math.round(await p.evaluate(() => (window as unknown as Watched).painted));
  console.log(`newest page painted after ${painted} ms: ${await trace.lap(p)}`);

  // The log has all rows, of which those in view exist.
  await p.click("#tab-log");
  await p.waitForSelector(".log .row .type");
  for (const part of [0.5, 0.1, 0.9, 0.3, 0, 1, 0.4]) {
    for (const [seq, type] of await rowsAt(p, part)) expect(type).toBe(log[seq - 1]?.type);
    await small(p, "a log");
  }
  expect(requests.stretches.length).toBeLessThan(20);
  expect(requests.most).toBeLessThanOrEqual(2);
  console.log(`log scrolled, ${requests.stretches.length} requests: ${await trace.stop(p)}`);
  expect(errors).toEqual([]);
  await p.close();
});

test("a link to any moment shows what was there then, without the log before it", async () => {
  for (const [seq, view] of folds(someSeqs(3))) {
    const { p, errors, requests } = await visit(`/sessions/long?at=${seq}`);
    await p.waitForSelector(".session.past .talk");
    await p.waitForSelector(".talk .item");
    await p.waitForSelector('.view[aria-busy="false"]');
    const shown = await kindsShown(p);
    expect(shown, `at ${seq}`).toEqual(kindsOf(view.items.slice(-shown.length)));
    expect(requests.stretches.length).toBeLessThanOrEqual(2);
    await small(p, `at ${seq}`);
    expect(errors).toEqual([]);
    await p.close();
  }
});

/** Shows what is earlier, and checks that the item which was on top stays in its place meanwhile. */
async function showEarlier(p: Page): Promise<void> {
  await p.waitForSelector('.talk[aria-busy="false"] .item');
  const was = await p.evaluateHandle(() => {
    (document.querySelector(".talk") as Element).scrollTop = 0;
    return document.querySelector(".talk .item") as Element;
  });
  const first = await was.evaluate((e) => e.getBoundingClientRect().top);
  expect(first).toBeGreaterThan(0);
  await p.click(".earlier");
  await p.waitForFunction((e) => {
    const top = document.querySelector('.talk[aria-busy="false"] .item');
    return top !== null && top !== e;
  }, was);
  const now = await was.evaluate((e) => (e.isConnected ? e.getBoundingClientRect().top : undefined));
  expect(Math.abs((now ?? 0) - first), "the item that was on top stays where it was").toBeLessThan(60);
  await small(p, "an earlier conversation");
}

/** Looks at the trace of the whole log: all bars are in it, few rows exist, and it folds, zooms and scrolls. */
async function tracedWhole(p: Page): Promise<void> {
  const builder = new BarsBuilder();
  for (const e of log) builder.take(e);
  const { bars } = builder.bars;
  const tops = trace(bars).filter((b) => b.depth === 0);
  const rows = () => p.evaluate(() => (document.querySelector(".trace .extent") as HTMLElement).offsetHeight / 32);
  await expect.poll(rows, { timeout: maxWait }).toBe(bars.length);
  await p.click('.scale button:has-text("Fold runs")');
  await expect.poll(rows, { timeout: maxWait }).toBe(tops.length);
  await p.click('.scale button:has-text("Unfold runs")');
  await expect.poll(rows, { timeout: maxWait }).toBe(bars.length);
  for (let i = 0; i < 5; i++) await p.click('.scale button[aria-label="Zoom in"]');
  for (let part = 0; part <= 10; part++) {
    await p.evaluate(async (to) => {
      const box = document.querySelector(".trace .rows") as HTMLElement;
      box.scrollTop = ((box.scrollHeight - box.clientHeight) * to) / 10;
      await new Promise((go) => requestAnimationFrame(go));
    }, part);
    await small(p, `a trace at ${part} of 10`);
  }
  await p.focus(".trace .rows");
  await p.keyboard.press("End");
  await p.waitForSelector(".trace .detail");
  console.log(`${bars.length} bars of ${log.length} events`);
}

test("who scrubs or searches gets the whole log: two requests at once, that can be stopped, in bounded memory", async () => {
  const { p, errors, requests } = await visit("/sessions/long");
  await p.waitForSelector(".talk .item");
  const lap = await Trace.start(browser);

  // Nothing but what is under way comes after a stop.
  let release: () => void = () => {};
  const held = new Promise<void>((go) => {
    release = go;
  });
  await p.route(/events\?after=\d+&limit=\d+$/, async (route) => {
    await held;
    await route.continue();
  });
  const scrub = (seqs: readonly number[]) =>
    p.evaluate(async (all) => {
      const slider = document.querySelector('.scrubber input[type="range"]') as HTMLInputElement;
      for (const seq of all) {
        slider.value = String(seq);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((go) => requestAnimationFrame(go));
      }
    }, seqs);
  await scrub([log.length - 3]);
  await p.click(".scrubber .reading");
  await p.waitForSelector(".scrubber .reading", { state: "detached" });
  const before = requests.stretches.length;
  release();
  const seqs = someSeqs(60);
  const last = seqs.at(-1) as number;
  const began = Date.now();
  await scrub(seqs);
  expect(before).toBeLessThanOrEqual(4);
  await expect.poll(() => requests.stretches.length, { timeout: maxWait }).toBeGreaterThan(log.length / 1000 - 3);
  await p.waitForSelector(".scrubber .reading", { state: "detached" });
  console.log(`scrubbing while the whole log came, in ${Date.now() - began} ms: ${await lap.lap(p)}`);
  for (const [seq, view] of folds([last])) {
    const want = kindsOf(view.items);
    await p.waitForFunction((at) => document.querySelector(".scrubber input")?.getAttribute("aria-valuetext")?.startsWith(`${at}, `), seq);
    const shown = await kindsShown(p);
    expect(shown, `at ${seq}`).toEqual(want.slice(-shown.length));
  }
  await scrub(someSeqs(60));
  console.log(`scrubbing with all of it here: ${await lap.lap(p)}`);
  expect(requests.most).toBeLessThanOrEqual(2);
  // No event is asked for twice: a moment that is looked at before its page is here only has the page come in two parts.
  const asked = requests.answered.flatMap((q) => {
    const [, after, limit] = /after=(\d+)&limit=(\d+)/.exec(q) as RegExpExecArray;
    return Array.from({ length: Number(limit) }, (_, i) => Number(after) + 1 + i);
  });
  expect(new Set(asked).size).toBe(asked.length);

  await p.click("#tab-log");
  await p.fill(".log input[type=search]", "type:tool.called");
  const fit = log.filter((e) => e.type === "tool.called").length;
  await p.click(".frame button"); // back to live
  await p.waitForFunction((n) => document.querySelector(".log .count")?.textContent?.startsWith(`${n} of `), fit);
  await small(p, "a filtered log");
  await p.click(".log .row >> nth=2");
  const picked = Number(await p.locator(".log .row.picked .seq").textContent());
  await p.waitForSelector(".log .detail pre");
  expect(JSON.parse((await p.textContent(".log .detail pre")) ?? "")).toEqual(log[picked - 1]);
  const [file] = await Promise.all([p.waitForEvent("download"), p.click('.session .head button:has-text("Export log")')]);
  const lines = (await readFile(await file.path(), "utf8")).trimEnd().split("\n");
  expect(lines.map((l) => JSON.parse(l).sequence)).toEqual(log.map((e) => e.sequence));
  await p.click("#tab-trace");
  await p.waitForSelector(".trace .bar");
  await lap.lap(p);
  await scrub(someSeqs(60));
  console.log(`scrubbing over the trace: ${await lap.lap(p)}`);
  await small(p, "a trace");
  await p.click(".frame button"); // back to live
  await tracedWhole(p);
  console.log(`folding, zooming and scrolling the trace: ${await lap.stop(p)}`);
  await p.click("#tab-talk");
  await p.waitForSelector(".talk .item");
  const top = () => p.evaluate(() => document.querySelector(".talk .item.user")?.textContent);
  for (let i = 0; i < 5; i++) await showEarlier(p);
  expect(await top()).toBeTruthy();
  await p.click(".later button:last-child");
  await p.waitForSelector(".later", { state: "detached" });
  const { page: own, worker } = await memory(p);
  console.log(`memory: page ${own.toFixed(1)} MiB, worker ${worker.toFixed(1)} MiB`);
  expect(own).toBeLessThan(80);
  expect(worker).toBeLessThan(128);
  expect(errors).toEqual([]);
  await p.close();
});

test("readers keep their place in a page that renders slowly", async () => {
  const { p, errors } = await visit("/sessions/long");
  await p.waitForSelector('.talk[aria-busy="false"] .item');
  await p.evaluate(() => {
    const soon = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (f) => Number(setTimeout(() => soon(f), 150));
  });
  for (let i = 0; i < 5; i++) await showEarlier(p);
  expect(errors).toEqual([]);
  await p.close();
});

test("a jump to any event shows what a fold from the start shows", async () => {
  const client = new WaggleClient({ url: waggle.url });
  const shown = new Conversation();
  let arrived: (() => void) | undefined;
  let at = 0;
  const take = (r: Omit<Extract<Report, { do: "patch" }>, "log">) => {
    if (r.talk) shown.take(r.talk);
    at = r.seq;
    arrived?.();
  };
  const opening = {
    kind: "session",
    id: "long",
    origin: waggle.url,
    token: "",
    part: "talk",
    member: "",
    at: undefined,
    fresh: false,
  } as const;
  const keeper = new Keeper(client, new Tap(), opening, (r) => {
    if (r.do === "error") throw new Error(r.error.message);
    if (r.do === "patch") take(r as never);
  });
  await keeper.open();
  const jump = async (seq: number) => {
    const come = new Promise<void>((go) => {
      arrived = () => at === seq && go();
    });
    await keeper.seek(seq);
    await come;
  };
  const seqs = someSeqs(90).filter((s) => s < log.length);
  const want = new Map([...folds(seqs)].map(([seq, view]) => [seq, view] as const));
  let slowest = 0;
  for (const [i, seq] of seqs.entries()) {
    if (i === 30) keeper.whole(true); // what is shown is the same while the whole log is read, and after it
    const began = performance.now();
    await jump(seq);
    if (i > 70) slowest = Math.max(slowest, performance.now() - began);
    const { items, questions, active } = want.get(seq) as ViewBuilder["view"];
    const keys = shown.keys.value ?? [];
    const now = keys.map((k) => shown.item<ViewItem>(k).value);
    expect(now.length).toBeGreaterThanOrEqual(Math.min(8, items.length));
    expect(now).toEqual(items.slice(-now.length));
    expect(shown.state.value).toMatchObject({ active: active.length, later: false });
    expect(shown.state.value.questions.map((q) => q.question)).toEqual(questions);
  }
  console.log(`${seqs.length} jumps; the slowest of the last took ${slowest.toFixed(1)} ms`);
  keeper.close();
  client.close();
});

test(
  "the server's snapshot of any moment is the fold of the events that it is made of",
  async () => {
    const seqs = Array.from({ length: snapshots }, () => 1 + Math.floor(Math.random() * log.length)).sort((a, b) => a - b);
    const times: number[] = [];
    /** The folds that have begun at a base, and how far each is. */
    const own = new Map<number, { state: State; seq: number }>();
    for (const at of seqs) {
      const began = performance.now();
      const s = await api<Snapshot>("GET", `/logs/session/long/snapshot?at=${at}`);
      times.push(performance.now() - began);
      const f = own.get(s.base) ?? { state: emptyState("session"), seq: s.base - 1 };
      own.set(s.base, f);
      for (; f.seq < at; f.seq++) f.state.take(log[f.seq] as CanonicalEvent);
      expect(agrees(s, f.state.image), `at ${at} from ${s.base}`).toBe(true);
    }
    times.sort((a, b) => a - b);
    const ms = (part: number) => times[Math.floor((times.length - 1) * part)]?.toFixed(1);
    console.log(`${seqs.length} snapshots of ${own.size} bases: ${ms(0.5)} ms, p99 ${ms(0.99)} ms, the slowest ${ms(1)} ms`);
  },
  snapshots * 1000,
);

test("an answer streams into a long session, and ten thousand sessions are a list of few rows", async () => {
  const { p, errors } = await visit("/sessions/long");
  await p.waitForSelector(".talk .item");
  const trace = await Trace.start(browser);
  await p.fill(".composer textarea", "say 300 words");
  await p.keyboard.press("Enter");
  await p.waitForFunction(() => {
    const all = document.querySelectorAll(".item.answer");
    return (
      all[all.length - 1]?.textContent?.includes("word299") &&
      document.querySelector(".session .head .chip:not(.state-running, .state-waiting)")
    );
  });
  const text = await p.locator(".item.answer .markdown").last().textContent();
  expect(text?.trim()).toBe(Array.from({ length: 300 }, (_, i) => `word${i}`).join(" "));
  await small(p, "a streaming conversation");
  console.log(`streaming: ${await trace.lap(p)}`);

  const total = async () => (await api<{ total: number }>("GET", "/sessions?limit=1")).total;
  await expect.poll(total, { timeout: maxWait }).toBeGreaterThanOrEqual(sessions); // the index follows the logs
  await p.goto(`${waggle.url}/sessions`);
  await p.waitForSelector(".sessions .row");
  await small(p, "sessions");
  const extent = () => p.evaluate(() => document.querySelector(".sessions .extent")?.clientHeight ?? 0);
  for (let i = 0; i < 5; i++) {
    const before = await extent();
    await p.click(".sessions .more");
    await p.waitForFunction((h) => (document.querySelector(".sessions .extent")?.clientHeight ?? 0) > h, before);
    await p.evaluate(() => {
      const box = document.querySelector(".sessions .rows") as Element;
      box.scrollTop = box.scrollHeight;
    });
    await small(p, "more sessions");
  }
  console.log(`sessions: ${await trace.stop(p)}`);
  expect(errors).toEqual([]);
  await p.close();
});
