import type { RateList } from "@waggle-dev/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { lineThrough, minutesOf, topOf, troubles } from "../src/fold/charts.ts";

const list = (rates: RateList["rates"]): RateList => ({ gateway: "g", taken_at: "", seconds: 5, processes: [], missing: [], rates });

test("points of five seconds become minutes that end now", () => {
  const points = Array.from({ length: 14 }, (_, i) => (i < 2 ? 0.2 : i === 13 ? 0.4 : 0)); // one run each, and two in the last points
  const all = list([
    { name: "runs", recent: 0, points },
    { name: "failures", recent: 0, points: points.map((p) => p / 2) },
    { name: "cost", recent: 0, points: points.map(() => 100) },
    { name: "models", recent: 0, points, minutes: [{ p50_ms: 10, p99_ms: 20 }] },
  ]);
  expect(minutesOf(all, "models").slice(-2)).toEqual([
    { ago: 1, runs: 2, failures: 1, tokens: 0, cost: 0.001, p50: undefined, p99: undefined },
    { ago: 0, runs: 2, failures: 1, tokens: 0, cost: 0.006, p50: 10, p99: 20 },
  ]);
  expect(new Set(minutesOf(all, "tools").map((m) => m.p50))).toEqual(new Set([undefined]));
  const nothing = minutesOf(list([]), "models");
  expect(nothing.map((m) => m.ago)).toEqual(Array.from({ length: 15 }, (_, i) => 14 - i));
  expect(nothing.reduce((n, m) => n + m.runs, 0)).toBe(0);
});

test("an axis ends at a round number that nothing exceeds", () => {
  expect([0, Number.NaN, 1, 1.1, 3, 7, 99, 200, 0.03].map(topOf)).toEqual([1, 1, 1, 2, 5, 10, 100, 200, 0.05]);
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e9, noNaN: true }), (most) => {
      const top = topOf(most);
      expect(top).toBeGreaterThanOrEqual(most * (1 - 1e-6));
      expect(top).toBeLessThanOrEqual(most * 2.5 * (1 + 1e-6));
    }),
  );
});

test("a line has a gap where nothing was measured", () => {
  const at = (i: number, v: number) => [i, 10 - v] as const;
  expect(lineThrough([1, 2, undefined, 3], at)).toBe("M0 9L1 8M3 7");
  expect(lineThrough([undefined], at)).toBe("");
});

test("what is wrong comes with its remedy, the worst first", () => {
  const found = [
    { level: "OK", what: "a", is: "fine" },
    { level: "WARN", what: "b", is: "slow", do: "wait" },
    { level: "FAIL", what: "c", is: "down" },
  ];
  expect(troubles(found)).toEqual([
    { level: "fail", what: "c", is: "down", remedy: "" },
    { level: "warn", what: "b", is: "slow", remedy: "wait" },
  ]);
});
