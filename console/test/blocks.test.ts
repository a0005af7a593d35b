import type { CanonicalEvent } from "@waggle-dev/client";
import type { ViewItem } from "@waggle-dev/client/view";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Block, blocks, type Margin } from "../src/fold/blocks.ts";
import { marginOf } from "../src/log/margin.ts";
import { emptyState } from "../src/log/states.ts";
import { Session, whats } from "./session.ts";

const steps = [
  { id: "a", title: "Read" },
  { id: "b", title: "Count" },
  { id: "c", title: "Buy", dependencies: ["a"] },
  { id: "d", title: "Write", dependencies: ["c"] },
];

/** A run whose steps a and b are on at the same time, whose step c fails, so that d is skipped. */
function run(s: Session): void {
  const of = (step_id: string) => ({ run_id: "r", stage: "solving", step_id, job_id: `job-${step_id}` });
  const begins = (id: string) => s.put("step.started", { ...of(id), step: steps.find((x) => x.id === id), attempt: 1 });
  const says = (id: string, text: string) => {
    s.put("message.started", { ...of(id), message_id: `m-${text}`, model: "demo" });
    s.put("message.completed", { ...of(id), message_id: `m-${text}`, content: text, stop_reason: "stop" });
  };
  s.put("message.received", { run_id: "r", message_id: "m", content: "please" });
  s.put("run.started", { run_id: "r" });
  s.put("plan.completed", { run_id: "r", plan_id: "p", steps });
  s.put("input.requested", { run_id: "r", input_id: "q", scope: "plan", steps });
  s.put("input.answered", { run_id: "r", input_id: "q", decision: "approve", by: "ann" });
  begins("a");
  begins("b");
  says("b", "two");
  says("a", "hello");
  s.put("message.received", { run_id: "r2", message_id: "m2", content: "and then?" });
  s.put("input.requested", { run_id: "r", input_id: "approve_w", scope: "tool", tool: "write", call_id: "w" });
  s.put("input.answered", { run_id: "r", input_id: "approve_w", decision: "approve", tool: "write", call_id: "w", by: "ann" });
  s.put("tool.called", { ...of("b"), call_id: "w", tool: "write", arguments: {} });
  s.put("tool.completed", { ...of("b"), call_id: "w", result: "ok" });
  s.put("step.completed", { ...of("a"), output: "hello" });
  s.put("step.completed", { ...of("b"), output: "two" });
  begins("c");
  s.put("message.started", { ...of("c"), message_id: "m-c", model: "demo" });
  s.put("message.discarded", { ...of("c"), message_id: "m-c", reason: "the request failed" });
  s.put("request.failed", {
    ...of("c"),
    message_id: "m-c",
    code: "MODEL_RATE_LIMITED",
    message: "slow down",
    try: 1,
    max_tries: 3,
    retry_after_ms: 5,
  });
  says("c", "it costs");
  s.put("step.failed", { ...of("c"), code: "TIMEOUT", message: "the shop is shut" });
  s.put("step.cancelled", { run_id: "r", step_id: "d", reason: "dependency_failed" });
  s.put("run.completed", { run_id: "r", content: "the end", outcome: "partial_success" });
}

/** The items of a log with their margin. */
function folded(events: readonly CanonicalEvent[]): { keys: string[]; item: (key: string) => ViewItem; margin: Margin } {
  const state = emptyState("session");
  for (const e of events) state.take(e);
  const said = state.talk("");
  const items = new Map(said.items.map((i) => [said.key(i), i as ViewItem]));
  return { keys: [...items.keys()], item: (key) => items.get(key) as ViewItem, margin: marginOf(said, 0, said.items.length) };
}

const names = (all: readonly Block[]) => all.map((b) => (b.kind === "item" ? b.key : [b.run, ...b.steps.map((s) => [s.id, ...s.keys])]));

describe("the steps of a run", () => {
  const s = new Session();
  run(s);
  const { keys, item, margin } = folded(s.events);

  test("do not mix, stand below their plan, and say how they went", () => {
    expect(names(blocks(keys, item, margin))).toEqual([
      "user r m",
      "plan r p",
      "decision r q",
      ["r", ["a", "answer r m-hello"], ["b", "answer r m-two", "decision r approve_w", "tool r w"], ["c", "answer r m-it costs"], ["d"]],
      "user r2 m2",
      "answer r r-answer",
    ]);
    const said = Object.values(margin.steps).map(({ title, status, text, tries, from, to }) => [title, status, text, tries, from, to]);
    expect(said).toEqual([
      ["Read", "completed", "", 1, 6000, 17_000],
      ["Count", "completed", "", 1, 7000, 18_000],
      ["Buy", "failed", "the shop is shut", 1, 19_000, 25_000],
      ["Write", "cancelled", "dependency_failed", 0, undefined, undefined],
    ]);
  });

  test("have notes of what their items do not say themselves", () => {
    expect(margin.notes).toEqual({
      "decision r approve_w": { step: "b" },
      "tool r w": { from: 15_000, to: 16_000 },
      "answer r m-it costs": { failed: 1, code: "MODEL_RATE_LIMITED" },
    });
  });

  test("are those with items where the plan is out of view", () => {
    const cut = keys.slice(keys.indexOf("answer r m-hello"));
    expect(names(blocks(cut, item, margin))).toEqual([
      ["r", ["a", "answer r m-hello"], ["b", "decision r approve_w", "tool r w"], ["c", "answer r m-it costs"]],
      "user r2 m2",
      "answer r r-answer",
    ]);
  });

  test("are those of the run that repairs another one, and of each attempt the last counts", () => {
    const again = new Session();
    run(again);
    again.put("run.started", { run_id: "r3", repairs: "r" });
    for (const attempt of [1, 2]) {
      const of = { run_id: "r3", stage: "solving", step_id: "c", job_id: `again-${attempt}` };
      again.put("step.started", { ...of, step: steps[2], attempt });
      again.put("message.completed", { ...of, message_id: `again-${attempt}`, content: "it costs 3", stop_reason: "stop" });
      if (attempt === 2) again.put("step.completed", { ...of, output: "3" });
    }
    const now = folded(again.events);
    expect(names(blocks(now.keys, now.item, now.margin)).slice(-1)).toEqual([["r3", ["c", "answer r3 again-1", "answer r3 again-2"]]]);
    const note = now.margin.steps["r3/c"];
    expect(note).toMatchObject({ title: "Buy", status: "completed", tries: 2, began: (s.events.length + 2) * 1000 });
    expect(note?.from).toBe((s.events.length + 4) * 1000);
  });
});

test("whatever a session does, each of its items is shown once, steps in the order in which they began, and any part of it likewise", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...whats), fc.nat(7)), { maxLength: 120 }), fc.nat(100), (all, from) => {
      const s = new Session();
      for (const [what, n] of all) s.do(what, n);
      const { keys, item, margin } = folded(s.events);
      const part = keys.slice(from % (keys.length + 1));
      const shown = blocks(part, item, margin);
      const flat = shown.flatMap((b) => (b.kind === "item" ? [b.key] : b.steps.flatMap((x) => x.keys)));
      expect([...flat].sort()).toEqual([...part].sort());
      for (const b of shown) {
        if (b.kind !== "steps") continue;
        const began = b.steps.map((x) => margin.steps[x.place]?.began ?? Number.MAX_SAFE_INTEGER);
        expect(began).toEqual(began.toSorted((x, y) => x - y));
        expect(new Set(b.steps.map((x) => x.id)).size).toBe(b.steps.length);
      }
    }),
  );
});
