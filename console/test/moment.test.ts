import type { Snapshot } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { canonical } from "../src/fold/canonical.ts";
import { Moment } from "../src/log/moment.ts";
import { fold, Shelf, turns } from "./shelf.ts";

const events = turns(500);
const head = events.length;

function of(shelf: Shelf, at?: number) {
  const shown: (number | undefined)[] = [];
  const differs: number[] = [];
  const changed = () => void shown.push(moment.frame?.seq);
  const moment = new Moment(at, shelf.folds, shelf, { head }, { changed, differs: (seq) => differs.push(seq) });
  return { moment, shown, differs };
}

const items = ({ frame }: Moment) => frame?.state.talk("").items ?? [];

/** What the server says after an event, as it comes from there. */
function snapshot(at: number): Snapshot {
  const e = events[at - 1];
  return JSON.parse(
    canonical({ kind: "session", id: "s", base: 1, seq: at, type: e?.type, time: e?.time, ...fold(events.slice(0, at)).image }),
  );
}

test("of several moments that are asked for at once the first and the last are made, one after the other", async () => {
  const shelf = new Shelf(events);
  const { moment, shown } = of(shelf);
  const go = shelf.hold();
  const seeks = [1200, 700, 1900, 300].map((seq) => moment.seek(seq));
  expect(shelf.asked).toEqual([[701, 1200]]);
  go();
  await Promise.all(seeks);
  expect([...new Set(shown)]).toEqual([undefined, 1200, 300]);
  expect(items(moment)).toEqual(fold(events.slice(0, 300)).talk("").items.slice(-items(moment).length));
});

test("who goes to the end while a moment is being made sees nothing of it", async () => {
  const shelf = new Shelf(events);
  const { moment } = of(shelf);
  const go = shelf.hold();
  const seek = moment.seek(1200);
  await moment.seek(undefined);
  go();
  await seek;
  expect([moment.inPast, moment.frame]).toEqual([false, undefined]);
});

test("the event at the end, and one that has not come, are not in the past", async () => {
  const shelf = new Shelf(events);
  const { moment } = of(shelf);
  for (const seq of [head, head + 1, undefined]) {
    await moment.seek(seq);
    expect([moment.past, moment.frame]).toEqual([undefined, undefined]);
  }
  await moment.seek(head - 1);
  expect([moment.past, moment.frame?.seq]).toEqual([head - 1, head - 1]);
  await Promise.all([moment.seek(undefined), moment.seek(300)]); // one right after the other
  expect(moment.frame?.seq).toBe(300);
});

test("a moment goes on from the one that is shown, and one that has expired is the first that is there", async () => {
  const shelf = new Shelf(events);
  const { moment } = of(shelf);
  await moment.seek(500);
  const { state } = moment.frame as { state: object };
  await moment.seek(600);
  expect(moment.frame?.state).toBe(state);
  expect(shelf.asked.at(-1)).toEqual([501, 600]);
  shelf.first = 800;
  await moment.seek(10);
  expect([moment.at, moment.frame?.seq]).toEqual([10, 800]);
});

test("all of it is shown again once more events are there", async () => {
  const shelf = new Shelf(events);
  const { moment } = of(shelf);
  await moment.again();
  expect(moment.frame).toBeUndefined();
  await moment.seek(2400);
  expect(moment.frame?.base).toBeGreaterThan(1);
  await shelf.folds.from(1, 2400);
  await moment.again();
  expect(moment.frame).toMatchObject({ base: 1, seq: 2400 });
});

test("what the server says of a moment is shown until the events are here, and held against them", async () => {
  const at = 700;
  const honest = new Shelf(events);
  honest.said = snapshot(at);
  const { moment, shown, differs } = of(honest, at);
  const go = honest.hold();
  const arrives = moment.arrive(at);
  await Promise.resolve(); // the answer of the server
  await Promise.resolve();
  expect(moment.frame).toMatchObject({ seq: at, loose: true });
  go();
  await arrives;
  expect(moment.frame).toMatchObject({ seq: at, base: 1 });
  expect([moment.frame?.loose, differs, new Set(shown)]).toEqual([undefined, [], new Set([at])]);

  const other = new Shelf(events);
  other.said = JSON.parse(JSON.stringify(snapshot(at)).replace('"message ', '"no message ')) as Snapshot;
  const liar = of(other, at);
  await liar.moment.arrive(at);
  expect(liar.differs).toEqual([at]);
  expect(items(liar.moment)).toEqual(fold(events.slice(0, at)).talk("").items);
});

test("without a snapshot a moment is made of events", async () => {
  const { moment } = of(new Shelf(events), 700);
  await moment.arrive(700);
  expect(moment.frame?.seq).toBe(700);
  expect(moment.frame?.loose).toBeUndefined();
});
