import { expect, test } from "vitest";
import type { Frame } from "../src/log/history.ts";
import { Session } from "./session.ts";
import { fold, Shelf, turns } from "./shelf.ts";

const events = turns(400);
const items = (f: Frame) => f.state.talk("").items;

test("a state near an event has its end from few events, and an outline of it comes before older ones are read", async () => {
  const shelf = new Shelf(events);
  const seq = 2000;
  const f = await shelf.folds.near(seq, () => expect.unreachable("one page has a cut"));
  expect(f.seq).toBe(seq);
  expect(f.base).toBeGreaterThan(1400);
  expect(items(f)).toEqual(fold(events.slice(0, seq)).talk("").items.slice(-items(f).length));
  const talk = new Session(); // one long run
  for (const what of ["ask", "work"]) talk.do(what, 1);
  while (talk.events.length < 1800) talk.do("piece", 1);
  const run = talk.events.slice(0, 1800);
  const one = new Shelf(run);
  const sketches: Frame[] = [];
  const whole = await one.folds.near(run.length, (s) => sketches.push(s));
  expect(sketches.map((s) => [s.base, s.seq, s.loose])).toEqual([[1301, 1800, true]]);
  expect([whole.base, whole.seq]).toEqual([1, 1800]);
  expect(items(whole)).toEqual(fold(run).talk("").items);
});

test("a state is extended over events that have expired, and over those that went again before they were used", async () => {
  const shelf = new Shelf(events);
  shelf.first = 900;
  const f = { base: 900, seq: 0, state: shelf.folds.empty() };
  let lost = false;
  const { store } = shelf;
  const get = store.get.bind(store);
  store.get = (seq) => {
    if (seq !== 950 || lost) return get(seq);
    lost = true;
    return undefined;
  };
  const taken: number[] = [];
  await shelf.folds.extend(f, 1000, true, (e) => taken.push(e.sequence));
  expect(taken).toEqual(Array.from({ length: 101 }, (_, i) => 900 + i));
  expect(shelf.asked).toEqual([
    [900, 1000],
    [950, 1000],
  ]);
});

test("states are kept on the way, but not those that are of a glance", async () => {
  const shelf = new Shelf(events);
  await shelf.folds.from(1, 2200);
  expect(shelf.folds.history.best(2200)?.seq).toBe(2000);
  const other = new Shelf(events);
  await other.folds.extend({ base: 1, seq: 0, state: other.folds.empty(), loose: true }, 2200);
  expect(other.folds.history.best(2200)).toBeUndefined();
});

test("who leaves takes no further event", async () => {
  const shelf = new Shelf(events);
  const go = shelf.hold();
  const f = { base: 1, seq: 0, state: shelf.folds.empty() };
  const work = shelf.folds.extend(f, 10);
  shelf.leave.abort();
  go();
  await expect(work).rejects.toThrow();
  expect(f.seq).toBe(0);
});
