import fc from "fast-check";
import { expect, test } from "vitest";
import { axis, type Bar, type BarKind } from "../src/fold/bars.ts";
import { moved, nameOf, ticks, trace, unfolded, type Window, whole, within, zoomed } from "../src/fold/trace.ts";

const bar = (kind: BarKind, id: string, seq: number, more: Partial<Bar> = {}): Bar => ({
  id: `${kind} ${id}`,
  kind,
  run: "r1",
  name: id,
  from: seq * 10,
  to: seq * 10 + 5,
  state: "completed",
  seq,
  ...more,
});

test("calls lie below the attempt at the job that made them, jobs below their step, and all below the run", () => {
  const bars = [
    bar("queue", "r1", 1),
    bar("run", "r1", 2),
    bar("job", "plan", 3, { job: "plan" }),
    bar("model", "m1", 4, { job: "plan" }),
    bar("step", "r1/one", 5, { job: "one" }),
    bar("step", "r1/two", 6, { job: "two" }),
    bar("job", "one", 7, { job: "one" }),
    bar("tool", "c1", 8, { job: "one" }),
    bar("job", "two", 9, { job: "two" }),
    bar("job", "one", 10, { job: "one" }),
    bar("tool", "c2", 11, { job: "one" }),
    bar("people", "q1", 12),
  ];
  const lines = trace(bars).map((b) => `${"  ".repeat(b.depth)}${b.bar.id}@${b.bar.seq} ${b.below}`);
  expect(lines).toEqual([
    "run r1@2 11",
    "  queue r1@1 0",
    "  job plan@3 1",
    "    model m1@4 0",
    "  step r1/one@5 4",
    "    job one@7 1",
    "      tool c1@8 0",
    "    job one@10 1",
    "      tool c2@11 0",
    "  step r1/two@6 1",
    "    job two@9 0",
    "  people q1@12 0",
  ]);
  const shut = new Set([nameOf(bars[4] as Bar)]);
  expect(unfolded(trace(bars), shut)).toHaveLength(bars.length - 4);
});

const kinds = ["run", "queue", "job", "model", "tool", "people", "pause", "step"] as const;
const some = fc.array(
  fc.record({
    kind: fc.constantFrom(...kinds),
    run: fc.constantFrom("r1", "r2"),
    job: fc.constantFrom(undefined, "a", "b"),
    from: fc.nat(1000),
    long: fc.nat(100),
  }),
  { maxLength: 40 },
);

test("the tree has every bar once, and each branch knows how many lie below it", () => {
  fc.assert(
    fc.property(some, fc.nat(), (list, pick) => {
      const bars = list.map((b, i): Bar => {
        const one = bar(b.kind, b.kind === "run" || b.kind === "queue" ? b.run : String(i), i + 1, {
          run: b.run,
          from: b.from,
          to: b.from + b.long,
        });
        return b.job ? { ...one, job: b.job } : one;
      });
      const all = trace(bars);
      expect(new Set(all.map((b) => b.bar))).toEqual(new Set(bars));
      expect(all).toHaveLength(bars.length);
      for (const [i, b] of all.entries()) {
        const after = all.slice(i + 1);
        const next = after.findIndex((x) => x.depth <= b.depth);
        expect(b.below).toBe(next < 0 ? after.length : next);
        if (i > 0) expect(b.depth).toBeLessThanOrEqual((all[i - 1]?.depth ?? 0) + 1);
      }
      if (all.length === 0) return;
      const one = all[pick % all.length] as (typeof all)[number];
      expect(unfolded(all, new Set([nameOf(one.bar)]))).toHaveLength(all.length - one.below);
    }),
  );
});

test("a window stays on the axis, keeps what is under the pointer, and can always be left", () => {
  const step = fc.oneof(
    fc.record({ around: fc.double({ min: 0, max: 100, noNaN: true }), factor: fc.constantFrom(0.5, 0.8, 1.25, 2) }),
    fc.record({ by: fc.double({ min: -2, max: 2, noNaN: true }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let w: Window = whole;
      for (const s of steps) {
        const next = "by" in s ? moved(w, s.by) : zoomed(w, s.around, s.factor);
        expect(next.from).toBeGreaterThanOrEqual(0);
        expect(next.to).toBeLessThanOrEqual(100 + 1e-9);
        expect(next.to - next.from).toBeGreaterThanOrEqual(0.05 - 1e-9);
        if ("factor" in s && s.factor < 1 && next.to - next.from > 0.06) {
          const place = w.from + ((w.to - w.from) * s.around) / 100;
          expect(within(next, place)).toBeCloseTo(s.around, 5);
        }
        w = next;
      }
      for (let i = 0; i < 40; i++) w = zoomed(w, 50, 2);
      expect(w).toEqual(whole);
    }),
  );
});

test("a scale has few lines, in order, also where time is folded", () => {
  const bars = [bar("run", "r1", 1, { from: 0, to: 1000 }), bar("run", "r2", 2, { run: "r2", from: 3_600_000, to: 3_601_000 })];
  const scale = axis(bars, 3_601_000);
  const lines = ticks(scale.place, 0, 3_601_000, whole, 8);
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.length).toBeLessThanOrEqual(17);
  expect(lines.map((l) => l.at)).toEqual(lines.map((l) => l.at).toSorted((a, b) => a - b));
  expect(ticks(scale.place, 0, 3_601_000, { from: 10, to: 11 }, 8).every((l) => l.at >= 0 && l.at <= 100)).toBe(true);
});
