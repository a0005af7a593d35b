import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answerKey, Hold, holdMs } from "../src/parts/hold.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a key approves only when it was held for its time", () => {
  const hold = new Hold();
  const act = vi.fn();
  const ended = vi.fn();
  hold.press(act, ended);
  vi.advanceTimersByTime(holdMs - 1);
  hold.release();
  vi.advanceTimersByTime(holdMs);
  expect(act).not.toHaveBeenCalled();
  expect(ended).toHaveBeenCalledOnce();

  hold.press(act, ended);
  vi.advanceTimersByTime(holdMs);
  hold.release();
  expect(act).toHaveBeenCalledOnce();
  expect(ended).toHaveBeenCalledTimes(2);
});

test("a second press replaces the first", () => {
  const hold = new Hold();
  const first = vi.fn();
  const second = vi.fn();
  hold.press(first, () => {});
  hold.press(second, () => {});
  vi.runAllTimers();
  expect(first).not.toHaveBeenCalled();
  expect(second).toHaveBeenCalledOnce();
});

/** A card of a page, as far as keys look at it. */
function card(disabled = false) {
  const buttons: Record<string, object> = { '[data-answer="approve"]': { disabled }, '[data-answer="reject"]': {} };
  const self = { querySelector: (s: string) => buttons[s] ?? null, closest: () => self };
  return { self: self as unknown as HTMLElement, buttons };
}
const page = (first: HTMLElement | null) => ({ querySelector: () => first }) as unknown as ParentNode;
const body = { closest: () => null } as unknown as Element;

test("keys answer the focused question and no other", () => {
  const first = card();
  const focused = card();
  expect(answerKey("y", body, page(null))).toBeUndefined();
  for (const key of ["y", "n"] as const) expect(answerKey(key, body, page(first.self))).toEqual({ do: "focus", card: first.self });
  const y = answerKey("y", focused.self, page(first.self));
  expect(y).toMatchObject({ do: "hold", button: focused.buttons['[data-answer="approve"]'] });
  const n = answerKey("n", focused.self, page(first.self));
  expect(n).toMatchObject({ do: "press", button: focused.buttons['[data-answer="reject"]'] });
  expect(answerKey("y", card(true).self, page(first.self))).toBeUndefined();
});
