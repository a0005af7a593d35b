import type { CanonicalEvent } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { Tail } from "../src/log/tail.ts";
import { fold, Shelf, turns } from "./shelf.ts";

const events = turns(30);

/** The end of a log of which so many events are there. */
async function at(n: number, base = 1) {
  const shelf = new Shelf(events);
  const work: Promise<void>[] = [];
  let strange = 0;
  const tail = new Tail(shelf.folds, shelf, { run: (w) => void work.push(w()), changed: () => {}, strange: () => strange++ });
  tail.head = n;
  tail.set(await shelf.folds.from(base, n));
  return { shelf, tail, done: () => Promise.all(work), strange: () => strange };
}

const items = ({ frame }: Tail) => frame?.state.talk("").items;
const event = (n: number) => events[n - 1] as CanonicalEvent;

test("events that follow each other are taken as they come, without a request", async () => {
  const { shelf, tail } = await at(10);
  const asked = shelf.asked.length;
  for (let n = 11; n <= 20; n++) tail.take(event(n));
  expect([tail.head, tail.newest?.sequence, tail.frame?.seq, shelf.asked.length]).toEqual([20, 20, 20, asked]);
  expect(items(tail)).toEqual(fold(events.slice(0, 20)).talk("").items);
});

test("events that are missing between are read once, however many come meanwhile", async () => {
  const { shelf, tail, done } = await at(10);
  const go = shelf.hold();
  const asked = shelf.asked.length;
  tail.take(event(15));
  tail.reach(20);
  tail.reach(18); // is nothing new
  expect([tail.head, shelf.asked.length]).toEqual([20, asked + 1]);
  go();
  await done();
  expect(tail.frame?.seq).toBe(20);
  expect(items(tail)).toEqual(fold(events.slice(0, 20)).talk("").items);
});

test("an event that comes right after the end was reached is not left out", async () => {
  const { tail, done } = await at(10);
  const advance = tail.advance();
  tail.reach(15);
  await Promise.all([advance, done()]);
  expect(tail.frame?.seq).toBe(15);
});

test("an event of a run whose beginning is not in the state asks for more of the log, unless there is no more", async () => {
  const begin = events.findIndex((e) => e.type === "message.received" && e.sequence > 10) + 1;
  const late = await at(begin + 1, begin + 1);
  late.tail.take(event(begin + 2));
  expect([late.tail.complete, late.strange()]).toEqual([false, 1]);
  const whole = await at(begin + 1);
  whole.tail.take(event(begin + 2));
  expect([whole.tail.complete, whole.strange()]).toEqual([true, 0]);
});

test("a new log begins where the hub says, and a sketch is shown until there is a state", async () => {
  const { shelf, tail } = await at(0);
  tail.begin(4);
  expect(tail.frame).toMatchObject({ base: 4, seq: 3 });
  tail.frame = undefined;
  tail.sketch = await shelf.folds.from(1, 5);
  expect(tail.shown).toBe(tail.sketch);
  const own = await shelf.folds.from(1, 6);
  tail.set(own);
  expect([tail.shown, tail.sketch]).toEqual([own, undefined]);
});
