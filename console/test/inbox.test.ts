import type { ListedQuestion } from "@waggle-dev/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { answersTogether, asleep, chosenOf, grouped, nextEnd, readSnoozed, Skew, snoozes, wakes } from "../src/fold/inbox.ts";

const at = Date.parse("2026-03-01T10:00:00Z");
const minute = 60_000;

function ask(id: string, scope: string, ends?: number, more: Partial<ListedQuestion> = {}): ListedQuestion {
  const expires = ends === undefined ? {} : { expires_at: new Date(at + ends * minute).toISOString() };
  const base = { id, input_id: id, state: "open", scope, kind: "session", log_id: id, seq: 1, asked_at: new Date(at).toISOString() };
  return { ...base, ...expires, ...more } as ListedQuestion;
}

test("questions stand by what they ask for, and the one that ends first is on top", () => {
  const all = [ask("a", "tool"), ask("b", "agent", 3), ask("c", "tool", 5), ask("d", "plan"), ask("e", "tool", 2), ask("f", "new scope")];
  expect(grouped(all).map((g) => [g.scope, g.questions.map((q) => q.id)])).toEqual([
    ["plan", ["d"]],
    ["tool", ["e", "c", "a"]],
    ["agent", ["b"]],
    ["new scope", ["f"]],
  ]);
  expect(nextEnd(all)).toBe(all[4]?.expires_at);
  expect(nextEnd([ask("a", "tool")])).toBeUndefined();
});

test("one answer is for open questions of one kind that are shown whole", () => {
  const all = [ask("a", "tool"), ask("b", "plan"), ask("c", "plan"), ask("d", "client_tool"), ask("e", "plan", 1, { cut: true })];
  expect(chosenOf(["a", "b", "c", "e", "gone"], all).map((q) => q.id)).toEqual(["b", "c"]);
  expect(chosenOf(["b", "a"], all).map((q) => q.id)).toEqual(["a"]);
  expect(chosenOf(["d"], all)).toEqual([]);
  expect(all.filter(answersTogether).map((q) => q.id)).toEqual(["a", "b", "c"]);
});

test("a question that is put off comes back at its time, or while it can still be answered", () => {
  const in_ = (how: (typeof snoozes)[number], ends?: number) => (wakes(how, at, ask("a", "tool", ends).expires_at) - at) / minute;
  expect(in_("quarter")).toBe(15);
  expect(in_("hour")).toBe(60);
  expect(in_("hour", 300)).toBe(60);
  expect(in_("hour", 30)).toBe(25); // five minutes before its end
  expect(in_("hour", 4)).toBe(2); // half of what is left
  expect(in_("hour", -1)).toBe(0); // it is over
  const morning = new Date(wakes("tomorrow", at, undefined));
  expect([morning.getHours(), morning.getDate() - new Date(at).getDate()]).toEqual([8, 1]);
  fc.assert(
    fc.property(fc.constantFrom(...snoozes), fc.integer({ min: 1, max: 3_000 }), (how, ends) => {
      const back = wakes(how, at, ask("a", "tool", ends).expires_at);
      expect(back).toBeGreaterThan(at);
      expect(back).toBeLessThan(at + ends * minute);
    }),
  );
});

test("what a browser has kept of others counts as nothing", () => {
  expect(readSnoozed('{"a":5,"b":"x","c":null}')).toEqual({ a: 5 });
  for (const text of [null, "", "{", "[1]", "7", "null"]) expect(readSnoozed(text)).toEqual({});
  expect(asleep({ a: 5, b: 6 }, 5)).toEqual({ b: 6 });
});

test("a time of the server is one of the page, by the announcement that came fastest", () => {
  const skew = new Skew();
  const time = (ms: number) => new Date(at + ms).toISOString();
  expect(skew.local(time(7))).toBe(at + 7);
  skew.hear(time(0), at - 4_000); // the clock of the page is slow
  skew.hear(time(100), at - 4_000 + 105);
  skew.hear("never", at);
  expect(skew.local(time(1_000))).toBe(at - 3_000);
});
