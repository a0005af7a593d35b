import fc from "fast-check";
import { expect, test } from "vitest";
import { type Arrived, tally } from "../src/fold/tally.ts";

test("what came is compared with the log", () => {
  const log = [1, 2, 3, 4, 5];
  expect(
    tally(
      [
        [1, 1],
        [2, 4],
        [5, 5],
      ],
      log,
    ),
  ).toEqual({ events: 5, lost: 0, doubled: 0, reordered: 0 });
  expect(
    tally(
      [
        [1, 2],
        [5, 5],
      ],
      log,
    ),
  ).toEqual({ events: 5, lost: 2, doubled: 0, reordered: 0 });
  expect(
    tally(
      [
        [1, 3],
        [3, 5],
      ],
      log,
    ),
  ).toEqual({ events: 5, lost: 0, doubled: 1, reordered: 0 });
  expect(
    tally(
      [
        [1, 2],
        [4, 5],
        [3, 3],
      ],
      log,
    ),
  ).toEqual({ events: 5, lost: 0, doubled: 0, reordered: 1 });
  expect(tally([], log).lost).toBe(5);
});

test("each fault that is put in is counted", () => {
  const whole = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
  const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 49 })).map((c) => [0, ...c.sort((a, b) => a - b), 50]);
  fc.assert(
    fc.property(cuts, fc.nat(), fc.constantFrom("none", "lose", "double"), (at, pick, fault) => {
      const came: Arrived[] = at.slice(1).map((to, i) => [(at[i] as number) + 1, to]);
      const n = pick % came.length;
      const [from, to] = came[n] as Arrived;
      if (fault === "lose") came.splice(n, 1);
      if (fault === "double") came.splice(n, 0, [from, to]);
      expect(tally(came, whole(50))).toEqual({
        events: 50,
        lost: fault === "lose" ? to - from + 1 : 0,
        doubled: fault === "double" ? to - from + 1 : 0,
        reordered: 0,
      });
    }),
  );
});
