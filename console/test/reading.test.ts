import { readdirSync, readFileSync } from "node:fs";
import type { CanonicalEvent, Snapshot } from "@waggle-dev/client";
import { describe, expect, test } from "vitest";
import type { Kind, Shown } from "../src/log/protocol.ts";
import { emptyState, type Said, type State } from "../src/log/states.ts";
import { Served } from "./served.ts";
import { Session } from "./session.ts";

// What the worker of a page reads of a log, and what it shows meanwhile. The log is served here, so that nothing depends on time.

/** A session of many short runs, each of which is over before the next message. */
function long(turns: number): Session {
  const s = new Session();
  for (let i = 0; i < turns; i++) {
    for (const what of ["ask", "work"]) s.do(what, 1);
    for (let n = 0; n < 20; n++) s.do("piece", 1);
    for (const what of ["tool", "plan", "step", "end"]) s.do(what, 5 + (i % 3));
  }
  return s;
}

const { events } = long(220);

const fold = (kind: Kind, all: readonly CanonicalEvent[]): State => {
  const s = emptyState(kind);
  for (const e of all) s.take(e);
  return s;
};

/** The end of the items of a fold, as long as what is shown. */
const end = ({ items }: Pick<Said, "items">, shown: readonly Shown[]) => {
  expect(shown.length).toBeGreaterThanOrEqual(Math.min(8, items.length));
  return items.slice(items.length - shown.length);
};

/** What the fold of the whole log says up to each of the events. */
function folds(at: readonly number[]): Map<number, Said> {
  const s = emptyState("session");
  const wanted = new Set(at);
  const all = new Map<number, Said>();
  for (const e of events) {
    s.take(e);
    if (wanted.has(e.sequence)) all.set(e.sequence, s.fork().talk(""));
  }
  return all;
}

test("the newest page comes first, and the rest only for those who look there", async () => {
  expect(events.length).toBeGreaterThan(5000);
  const served = new Served("session", events);
  const { keeper, told, opened } = served.open();
  await opened;
  await told.until(() => told.at === events.length);
  expect(served.asked.slice(0, 2)).toEqual(["head", `events?before=${events.length + 1}&limit=500`]);
  expect(served.stretches).toEqual([]);
  expect(told.items).toEqual(end(fold("session", events).talk(""), told.items));
  expect(told.talk.state.value).toMatchObject({ earlier: true, later: false, active: 0 });
  expect(told.reading).toBe(false);
  keeper.close();
});

test("a jump to any event shows what a fold from the start shows, before, while and after all of the log is read", async () => {
  const served = new Served("session", events);
  const { keeper, told, opened } = served.open();
  await opened;
  const jumps = Array.from({ length: 36 }, (_, i) => 1 + ((i * 2741) % (events.length - 1)));
  const wanted = folds(jumps);
  for (const [i, at] of jumps.entries()) {
    if (i === 12) {
      served.hold();
      keeper.whole(true);
      await served.until(() => served.stretches.length > 0);
      served.release();
    }
    if (i === 24) await told.until(() => !told.reading);
    await keeper.seek(at);
    await told.until(() => told.at === at);
    const want = wanted.get(at) as Said;
    expect(told.items, `at ${at}`).toEqual(end(want, told.items));
    expect(told.talk.state.value).toMatchObject({ active: want.active, questions: want.questions, later: false });
  }
  expect(told.count("error")).toBe(0);
  keeper.close();
});

test("all of the log comes in two requests at once, no event twice, and no further one after a stop", async () => {
  const served = new Served("session", events);
  const { keeper, told, opened } = served.open();
  await opened;
  await told.until(() => told.at === events.length);
  served.hold();
  keeper.whole(true);
  await served.until(() => served.stretches.length === 2);
  keeper.whole(false);
  served.release();
  await keeper.rows([1, 1001]); // what was under way has come
  await told.until(() => told.count("rows") === 1);
  expect(served.stretches.length).toBe(2);
  served.hold();
  keeper.whole(true);
  await told.until(() => told.reading);
  served.release();
  await told.until(() => !told.reading);
  expect(served.most).toBe(2);
  const asked = served.stretches.flatMap((q) => {
    const [, after, limit] = /after=(\d+)&limit=(\d+)/.exec(q) as RegExpExecArray;
    return Array.from({ length: Number(limit) }, (_, i) => Number(after) + 1 + i);
  });
  expect(asked.length).toBeGreaterThan(events.length - 1001);
  expect(new Set(asked).size).toBe(asked.length);
  const seen = Array.from({ length: 30 }, (_, i) => 1 + i * 150);
  await keeper.rows(seen);
  const rows = told.reports.findLast((r) => r.do === "rows");
  expect(rows && "rows" in rows && rows.rows.map((r) => [r.seq, r.type])).toEqual(seen.map((n) => [n, events[n - 1]?.type]));
  keeper.close();
});

test("a step that is carried out again after the end of its run has its title, also where its plan is out of view", async () => {
  const s = new Session();
  s.do("ask", 1);
  s.do("work", 1);
  for (const [type, data] of [
    ["plan.completed", { plan_id: "p", steps: [{ id: "s1", title: "Count the words" }] }],
    ["run.completed", { content: "done" }],
  ] as const)
    s.put(type, { run_id: "r1", ...data });
  s.put("run.started", { run_id: "r2", repairs: "r1" });
  s.put("step.started", { run_id: "r2", step: { id: "s1", title: "Count the words" } });
  s.put("message.started", { run_id: "r2", stage: "solving", step_id: "s1", message_id: "a", model: "demo" });
  s.put("message.completed", { run_id: "r2", stage: "solving", step_id: "s1", message_id: "a", content: "45 words" });
  const { keeper, told, opened } = new Served("session", s.events).open();
  await opened;
  await told.until(() => told.at === s.events.length);
  expect(told.items.map((i) => ("text" in i ? i.text : ""))).toContain("45 words");
  expect(told.talk.state.value.steps["r2/s1"]?.title).toBe("Count the words");
  keeper.close();
});

const folder = new URL("../../gateway/snapshot/testdata/", import.meta.url);
const names = readdirSync(folder).flatMap((f) => (f.endsWith(".jsonl") ? [f.slice(0, -".jsonl".length)] : []));

/** A log of the gateway's golden files; that of a member is read with the one of its team. */
function golden(name: string): Served | undefined {
  const lines = readFileSync(new URL(`${name}.jsonl`, folder), "utf8")
    .trimEnd()
    .split("\n");
  const log = lines.map((l) => JSON.parse(l) as CanonicalEvent);
  const kind = log[0]?.subject.split(".")[1] as Kind | "member";
  return kind === "member" || log[0]?.sequence !== 1 ? undefined : new Served(kind, log);
}

/** Has all events read, and the log shown one event earlier and then as before: of events alone. */
async function again({ keeper, told }: ReturnType<Served["open"]>, served: Served, at: number): Promise<void> {
  await keeper.rows(served.log.map((e) => e.sequence));
  for (const seq of [at - 1, at]) {
    await keeper.seek(seq);
    await told.until(() => told.at === seq);
  }
}

describe.each(names.filter((n) => golden(n)))("%s, opened at a moment of its past", (name) => {
  test("is there before its events, and they change nothing", async () => {
    const served = golden(name) as Served;
    const at = Math.floor((served.log.length * 2) / 3);
    served.hold();
    const page = served.open({ at });
    const { told } = page;
    await told.until(() => told.at === at);
    expect(served.asked.filter((q) => q.startsWith("snapshot"))).toEqual([`snapshot?at=${at}`]);
    const before = [structuredClone(told.items), told.tree, told.task];
    served.release();
    await page.opened;
    await again(page, served, at);
    expect([told.items, told.tree, told.task]).toEqual(before);
    expect([told.count("differs"), told.count("error")]).toEqual([0, 0]);
    page.keeper.close();
  });
});

test("a snapshot that says something else than the events is reported, and the page shows the events", async () => {
  const served = golden("chat") as Served;
  const at = served.log.length - 2;
  const { told: honest, keeper } = served.open({ at });
  await honest.until(() => honest.items.length > 0 && honest.at === at);
  const [first] = honest.items as [Shown & { text: string }];
  keeper.close();
  served.hold();
  served.snapshot = (s) => JSON.parse(JSON.stringify(s).replace(JSON.stringify(first.text), '"lies"')) as Snapshot;
  const page = served.open({ at });
  const { told } = page;
  await told.until(() => told.at === at);
  expect(told.items[0]).toMatchObject({ text: "lies" });
  served.release();
  await told.until(() => told.count("differs") === 1 && (told.items[0] as { text: string }).text === first.text);
  expect(told.reports.find((r) => r.do === "differs")).toMatchObject({ seq: at });
  page.keeper.close();
});

test("where the server has no snapshot, the page shows the same from events", async () => {
  const served = golden("chat") as Served;
  served.snapshot = () => undefined;
  const at = served.log.length - 2;
  const { told, keeper } = served.open({ at });
  await told.until(() => told.at === at);
  expect(told.items).toEqual(fold("session", served.log.slice(0, at)).talk("").items);
  expect(told.count("differs")).toBe(0);
  keeper.close();
});
