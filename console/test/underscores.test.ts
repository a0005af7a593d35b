import fc from "fast-check";
import { expect, test } from "vitest";
import { trailing, withinWords } from "../src/fold/underscores.ts";

const found = (text: string, from = 0, to = text.length) => withinWords(text, from, to).map(([a, b]) => `${a}-${b}`);

test("underscores within words are found, and no others", () => {
  expect(found("task_0001 is snake__case, _not_ this, nor _that or this_ or a_ b_")).toEqual(["4-5", "18-20"]);
  expect(found("größe_ß und 任务_一 𝒂_𝒃")).toEqual(["5-6", "14-15", "19-20"]);
  expect(found("__init__ (__all__) x_.y")).toEqual([]);
  expect([trailing(""), trailing("a"), trailing("a__"), trailing("_")]).toEqual([0, 0, 2, 1]);
});

test("a text has the same underscores however it is cut", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", "_", " ", "ß", "𝒂", "."), maxLength: 40 });
  fc.assert(
    fc.property(texts, fc.array(fc.nat(40)), (text, cuts) => {
      const places = (from: number, to: number) =>
        withinWords(text, from, to).flatMap(([a, b]) => Array.from({ length: b - a }, (_, i) => a + i));
      const ends = [...new Set([...cuts.filter((c) => c <= text.length), text.length])].sort((a, b) => a - b);
      expect(ends.flatMap((to, i) => places(ends[i - 1] ?? 0, to))).toEqual(places(0, text.length));
    }),
  );
});
