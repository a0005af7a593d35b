import type { CanonicalEvent } from "@waggle-dev/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { align, difference } from "../src/fold/compare.ts";
import { type Deed, sheetOf } from "../src/fold/run.ts";

const deed = fc.record({
  kind: fc.constantFrom("step" as const, "model" as const, "tool" as const, "people" as const, "answer" as const),
  step: fc.constantFrom("", "count", "write"),
  name: fc.constantFrom("read", "write", "demo"),
  state: fc.constantFrom("completed" as const, "failed" as const, "unknown" as const),
  ms: fc.option(fc.nat(100), { nil: undefined }),
  value: fc.dictionary(fc.string({ maxLength: 2 }), fc.oneof(fc.nat(3), fc.string({ maxLength: 2 }))),
  seq: fc.nat(),
});
const runs = fc
  .array(deed, { maxLength: 30 })
  .map((all) => all.map((d, i): Deed => ({ ...d, seq: i + 1, ...(d.kind === "step" ? { name: d.step } : {}) })));

test("everything that two runs did is in exactly one pair", () => {
  fc.assert(
    fc.property(runs, runs, (a, b) => {
      const pairs = align(a, b);
      const of = (side: "a" | "b") => pairs.flatMap((p) => p[side]?.seq ?? []).sort((x, y) => x - y);
      expect(of("a")).toEqual(a.map((d) => d.seq));
      expect(of("b")).toEqual(b.map((d) => d.seq));
      for (const p of pairs) expect(p.a ?? p.b).toBeDefined();
      for (const p of pairs)
        if (p.a && p.b) expect([p.a.kind, p.a.kind === "answer" || p.a.step]).toEqual([p.b.kind, p.b.kind === "answer" || p.b.step]);
    }),
  );
});

test("a run does not differ from itself, and keeps its order within a step", () => {
  fc.assert(
    fc.property(runs, (a) => {
      const pairs = align(a, structuredClone(a));
      expect(pairs.filter((p) => p.differs)).toEqual([]);
      for (const step of ["", "count", "write"]) {
        const of = pairs.flatMap((p) => (p.a?.step === step && p.a.kind !== "answer" ? [p.a.seq] : []));
        expect(of).toEqual(a.filter((d) => d.step === step && d.kind !== "answer").map((d) => d.seq));
      }
    }),
  );
});

test("the same runs the other way around are the same pairs the other way around", () => {
  fc.assert(
    fc.property(runs, runs, (a, b) => {
      expect(align(b, a)).toEqual(align(a, b).map((p) => ({ ...p, a: p.b, b: p.a })));
    }),
  );
});

test("two JSON values differ where they are not the same, on both sides", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      expect(difference(a, structuredClone(a))).toEqual([]);
      const found = difference(a, b);
      expect(difference(b, a)).toEqual(found.map((d) => ({ ...d, a: d.b, b: d.a })));
      expect(found.length === 0).toBe(same(a, b));
      for (const d of found) expect([get(a, d.path), get(b, d.path)]).toEqual([d.a, d.b]);
    }),
    { numRuns: 500 },
  );
  expect(difference({ path: "a.md", n: [1, 2] }, { path: "b.md", n: [1], more: true })).toEqual([
    { path: ["path"], a: "a.md", b: "b.md" },
    { path: ["n", "1"], a: 2, b: undefined },
    { path: ["more"], a: undefined, b: true },
  ]);
});

const get = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((x, k) => (Object.hasOwn(x as object, k) ? (x as Record<string, unknown>)[k] : undefined), value);

/** Whether two JSON values are the same, whatever the order of their keys. */
function same(a: unknown, b: unknown): boolean {
  const sorted = (x: unknown): unknown =>
    Array.isArray(x)
      ? x.map(sorted)
      : x && typeof x === "object"
        ? Object.entries(x)
            .sort(([p], [q]) => (p < q ? -1 : 1))
            .map(([k, v]) => [k, sorted(v)])
        : Object.is(x, -0)
          ? "-0"
          : x;
  return JSON.stringify([sorted(a), Array.isArray(a)]) === JSON.stringify([sorted(b), Array.isArray(b)]);
}

test("the sheet of a run has its steps, calls and tokens; no price is none, not zero", () => {
  let sequence = 0;
  const run_id = "r";
  const e = (type: string, data: object) =>
    ({ type, data: { run_id, ...data }, sequence: ++sequence, time: new Date(sequence * 1000).toISOString() }) as unknown as CanonicalEvent;
  const sheet = sheetOf([
    e("message.received", { content: "count" }),
    e("run.started", { mode: "plan" }),
    e("step.started", { step: { id: "s1", title: "Count" } }),
    e("tool.called", { call_id: "c", tool: "words", arguments: { path: "a" }, step_id: "s1" }),
    e("tool.failed", { call_id: "c", code: "E", message: "no" }),
    e("usage.recorded", { input_tokens: 5, output_tokens: 2, cached_tokens: 4 }),
    e("step.completed", { step_id: "s1", output: "2" }),
    e("run.completed", { content: "2 words" }),
  ]);
  expect(sheet).toMatchObject({
    question: "count",
    mode: "plan",
    state: "completed",
    ms: 6000,
    input: 5,
    cached: 4,
    output: 2,
    cost: undefined,
  });
  expect(sheet.deeds.map((d) => [d.kind, d.step, d.name, d.state, d.ms])).toEqual([
    ["step", "Count", "Count", "completed", 4000],
    ["tool", "Count", "words", "failed", 1000],
    ["answer", "", "", "completed", undefined],
  ]);
  expect(sheet.deeds[1]?.value).toEqual({ arguments: { path: "a" }, code: "E", message: "no" });
});
