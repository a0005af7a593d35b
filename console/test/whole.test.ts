import { expect, test } from "vitest";
import type { Frame } from "../src/log/history.ts";
import { Whole } from "../src/log/whole.ts";
import { fold, Shelf, turns } from "./shelf.ts";

const events = turns(600);

function of(shelf: Shelf, head = shelf.events.length) {
  const work: Promise<void>[] = [];
  const tail = { head, complete: false };
  const all: Frame[] = [];
  const whole: Whole = new Whole(shelf.folds, shelf, tail, {
    run: (w) => void work.push(w()),
    changed: () => {},
    done: async (f) => {
      expect(whole.on).toBe(true); // until those who are told have what they need
      all.push(f);
      tail.complete = true;
    },
  });
  return { whole, tail, all, ends: () => Promise.all(work) };
}

test("all of a log is read, page after page, each while the one before it is folded", async () => {
  const shelf = new Shelf(events);
  const { whole, all, ends } = of(shelf);
  whole.start();
  whole.start();
  await ends();
  expect([whole.on, whole.read, all.length]).toEqual([false, events.length, 1]);
  expect(all[0]).toMatchObject({ base: 1, seq: events.length });
  expect(all[0]?.state.talk("").items).toEqual(fold(events).talk("").items);
  expect(shelf.asked.slice(0, 3)).toEqual([
    [1001, 2000],
    [1, 1000],
    [2001, 3000],
  ]);
  whole.start();
  expect(whole.on).toBe(false); // there is no more
});

test("a reading that was stopped goes on where it was", async () => {
  const shelf = new Shelf(events);
  const { whole, all, ends } = of(shelf);
  const go = shelf.hold();
  whole.start();
  whole.stop();
  expect(whole.on).toBe(false);
  go();
  await ends();
  expect([whole.read, all.length]).toEqual([1000, 0]);
  const asked = shelf.asked.length;
  whole.start();
  await ends();
  expect(shelf.asked.slice(asked).every(([from]) => from > 1000)).toBe(true);
  expect([whole.read, all.length]).toEqual([events.length, 1]);
});

test("nothing is read of an empty log, and events that have expired do not count", async () => {
  const empty = of(new Shelf([]));
  empty.whole.start();
  expect(empty.whole.on).toBe(false);
  const shelf = new Shelf(events);
  shelf.first = 2001;
  const { whole, ends } = of(shelf);
  expect(whole.read).toBe(0);
  whole.start();
  await ends();
  expect(whole.read).toBe(events.length - 2000);
});
