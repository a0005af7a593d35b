import type { CanonicalEvent } from "@waggle-dev/client";
import { ViewBuilder } from "@waggle-dev/client/view";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Bar, BarsBuilder, changed } from "../src/fold/bars.ts";
import { CutFinder } from "../src/log/cut.ts";
import { History } from "../src/log/history.ts";
import { Filter, Marks } from "../src/log/lines.ts";
import type { Shown } from "../src/log/protocol.ts";
import { emptyState, type State } from "../src/log/states.ts";
import { pageSize, Store } from "../src/log/store.ts";
import { Talk } from "../src/log/talk.ts";
import { type Patch, Views } from "../src/log/views.ts";
import { weight } from "../src/log/window.ts";
import { Conversation } from "../src/model/conversation.ts";
import { Session, whats } from "./session.ts";

const deeds = fc.array(fc.record({ what: fc.constantFrom(...whats), n: fc.nat(9) }), { maxLength: 150, size: "max" });

const sessions = deeds.map((all) => {
  const s = new Session();
  for (const d of all) s.do(d.what, d.n);
  return s.events;
});

const fold = (events: readonly CanonicalEvent[]): State => {
  const s = emptyState("session");
  for (const e of events) s.take(e);
  return s;
};

const shown = (s: State) => ({
  items: s.talk("").items,
  questions: s.talk("").questions,
  active: s.talk("").active,
  bars: s.bars,
  state: s.summary.state,
});

test("a fold that begins where nothing earlier matters shows the end of what the whole one shows, at every cut", () => {
  let cuts = 0;
  fc.assert(
    fc.property(sessions, fc.nat(), fc.nat(), (events, a, b) => {
      const until = events.length === 0 ? 0 : a % (events.length + 1);
      const whole = fold(events.slice(0, until));
      const finder = new CutFinder();
      const from = until === 0 ? 0 : b % until;
      for (let i = until - 1; i >= from; i--) finder.take(events[i] as CanonicalEvent);
      if (finder.found === undefined) return;
      cuts++;
      const part = fold(events.slice(finder.found - 1, until));
      expect(part.talk("").items).toEqual(whole.talk("").items.slice(whole.talk("").items.length - part.talk("").items.length));
      expect(part.bars.bars).toEqual(whole.bars.bars.slice(whole.bars.bars.length - part.bars.bars.length));
      expect(part.talk("").questions).toEqual(whole.talk("").questions);
      expect(part.talk("").active).toBe(whole.talk("").active);
      expect(part.summary.state).toBe(whole.summary.state);
    }),
    { numRuns: 2000 },
  );
  expect(cuts).toBeGreaterThan(200);
});

test("a state that goes on by itself is the fold of its events, and leaves the one that it came from alone", () => {
  fc.assert(
    fc.property(sessions, fc.nat(), fc.nat(), (events, a, b) => {
      const [at, to] = [a % (events.length + 1), b % (events.length + 1)].sort((x, y) => x - y) as [number, number];
      const first = fold(events.slice(0, at));
      const before = structuredClone(shown(first));
      const second = first.fork();
      for (const e of events.slice(at, to)) second.take(e);
      expect(shown(second)).toEqual(shown(fold(events.slice(0, to))));
      expect(shown(first)).toEqual(before);
      for (const e of events.slice(at)) first.take(e);
      expect(shown(first)).toEqual(shown(fold(events)));
      expect(shown(second)).toEqual(shown(fold(events.slice(0, to))));
    }),
    { numRuns: 500 },
  );
});

test("the page that takes patches shows the window over what the worker has, however it moves", () => {
  fc.assert(
    fc.property(sessions, fc.array(fc.constantFrom("event", "earlier", "later", "end", "back"), { maxLength: 60 }), (events, moves) => {
      const states: State[] = [emptyState("session")];
      const talk = new Talk("", emptyState("session").talk("").key);
      const page = new Conversation();
      let s = states[0] as State;
      let next = 0;
      for (const move of moves) {
        if (move === "back") {
          next = Math.floor(next / 2);
          s = fold(events.slice(0, next));
        } else if (move === "event")
          for (let i = 0; i < 5; i++) {
            const e = events[next++];
            if (e) s.take(e);
          }
        else talk.window[move](s.talk("").items);
        const p = talk.patch(s.talk(""), false, false);
        if (p) page.take(structuredClone(p));
        const { from, to } = talk.window.over(s.talk("").items);
        const keys = page.keys.value ?? [];
        expect(keys.map((k) => page.item(k).value)).toEqual(s.talk("").items.slice(from, to));
        expect(page.state.value).toMatchObject({ earlier: from > 0, later: to < s.talk("").items.length, active: s.talk("").active });
      }
    }),
    { numRuns: 300 },
  );
});

test.each(["many turns", "one turn"])("the window over %s has few of them, and reaches everything in both directions", (what) => {
  const s = new Session();
  if (what === "one turn") {
    for (const deed of ["ask", "work"]) s.do(deed, 1);
    for (let i = 0; i < 1000; i++) s.put("tool.called", { run_id: "r1", call_id: `c${i}`, tool: "read", arguments: {} });
  }
  for (let i = 0; what === "many turns" && i < 400; i++)
    for (const [what, n] of [
      ["ask", 1],
      ["work", 1],
      ["piece", 1],
      ["tool", 5],
      ["end", 0],
    ] as const)
      s.do(what, n);
  const state = fold(s.events);
  const talk = new Talk("", state.talk("").key);
  const seen = new Set<Shown>();
  const look = () => {
    const { from, to } = talk.window.over(state.talk("").items);
    const part = state.talk("").items.slice(from, to);
    for (const i of part) seen.add(i);
    expect(part.filter((i) => "kind" in i && i.kind === "user").length).toBeLessThanOrEqual(50);
    expect(part.reduce((sum, i) => sum + weight(i), 0)).toBeLessThanOrEqual(900);
    return { from, to };
  };
  let at = look();
  expect(at.to).toBe(state.talk("").items.length);
  while (at.from > 0) {
    const before = at;
    talk.window.earlier(state.talk("").items);
    at = look();
    expect(at.from).toBeLessThan(before.from);
    expect(at.to).toBeGreaterThan(before.from); // what was read stays
  }
  expect(seen.size).toBe(state.talk("").items.length);
  while (at.to < state.talk("").items.length) {
    const before = at;
    talk.window.later(state.talk("").items);
    at = look();
    expect(at.to).toBeGreaterThan(before.to);
    expect(at.from).toBeLessThan(before.to);
  }
});

test("a store has bounded room, and knows what is missing", () => {
  const store = new Store(100_000);
  const event = (sequence: number) => ({ sequence, type: "message.delta", data: { text: "x".repeat(80) } }) as unknown as CanonicalEvent;
  for (let n = 1; n <= 5000; n++) store.put(event(n));
  let kept = 0;
  for (let n = 1; n <= 5000; n++) if (store.get(n)) kept++;
  expect(kept).toBeLessThan(2000);
  expect(store.get(5000)?.sequence).toBe(5000);
  expect(store.gap(1, 500)).toEqual({ from: 1, to: 500 });
  expect(store.gap(4500, 5000)).toBeUndefined();
  store.put(event(7));
  expect(store.gap(1, pageSize)).toEqual({ from: 1, to: 6 });
  expect(store.gap(7, 7)).toBeUndefined();
  store.put({ ...event(20), from: 10 } as CanonicalEvent); // stands for several, of which the log has each
  expect(store.get(20)).toBeUndefined();
});

test("states are kept within a bound, and the one that began earliest of those that are near is taken", () => {
  const events = Array.from(
    { length: 3000 },
    (_, i) =>
      ({
        type: "message.received",
        data: { run_id: `r${i}`, message_id: `m${i}`, content: "x" },
        sequence: i + 1,
        time: "2026-01-01T00:00:00Z",
      }) as unknown as CanonicalEvent,
  );
  const h = new History(200_000);
  const s = emptyState("session");
  for (const e of events) {
    s.take(e);
    if (e.sequence % 100 === 0) h.keep({ base: 1, seq: e.sequence, state: s });
  }
  expect(h.size).toBeLessThanOrEqual(200_000);
  expect(h.best(99)).toBeUndefined();
  const big = new History();
  big.keep({ base: 500, seq: 900, state: s });
  big.keep({ base: 1, seq: 700, state: s });
  big.keep({ base: 400, seq: 5000, state: s });
  expect(big.best(950)?.base).toBe(1);
  expect(big.best(5100)?.base).toBe(400);
  big.keep({ base: 1, seq: 5000, state: s });
  expect(big.best(5100)?.base).toBe(1);
  big.keep({ base: 8995, seq: 9000, state: s });
  expect(big.best(9001)?.base).toBe(1); // not the state of six events: a jump that went on from it would show seven
});

test("a filter finds what fits, page by page and as events come", () => {
  const store = new Store();
  const event = (sequence: number) =>
    ({
      sequence,
      time: "2026-01-01T00:00:00Z",
      type: sequence % 10 === 0 ? "tool.called" : "run.started",
      data: {},
    }) as unknown as CanonicalEvent;
  for (let n = 1; n <= 2500; n++) store.put(event(n));
  const f = new Filter("type:tool.", store, store.numbers);
  while (f.step());
  expect([...f.found]).toEqual(Array.from({ length: 250 }, (_, i) => (i + 1) * 10));
  store.put(event(2510));
  f.note(2510);
  while (f.step());
  expect(f.found.at(-1)).toBe(2510);
  const marks = new Marks();
  marks.note({ ...event(1), type: "tool.unknown" } as CanonicalEvent);
  expect([marks.unknowns(1), marks.unknowns(2), marks.take()]).toEqual([0, 1, [{ seq: 1, kind: "unknown" }]]);
});

test("the fold of a session looks at the items of one run only, and says the same", () => {
  fc.assert(
    fc.property(sessions, (events) => {
      const quick = new ViewBuilder();
      for (const e of events) quick.take(e);
      // Each event is taken by a builder that has looked at nothing yet.
      let slow = new ViewBuilder();
      const bars = new BarsBuilder();
      for (const e of events) {
        slow = slow.fork();
        slow.take(e);
        bars.take(e);
      }
      expect(slow.view).toEqual(quick.view);
    }),
  );
});

test("a trace that is told only of changes has all bars of the moment, however many there are", () => {
  fc.assert(
    fc.property(sessions, fc.array(fc.nat(), { minLength: 1, maxLength: 8 }), (events, moments) => {
      const views = new Views("trace", "");
      let bars: { bars: readonly Bar[]; until: number } | undefined;
      for (const m of moments) {
        const s = fold(events.slice(0, m % (events.length + 1)));
        const patch: Patch = { do: "patch", seq: 0 };
        views.put(patch, s, false, false);
        if (patch.bars) bars = changed(bars, patch.bars);
        expect(bars?.bars).toEqual(s.bars.bars);
      }
    }),
  );
  const long = new Session();
  for (let n = 0; n < 3000; n++) for (const what of whats.slice(0, 4)) long.do(what, n % 10);
  const [s, views] = [fold(long.events), new Views("trace", "")];
  const first: Patch = { do: "patch", seq: 0 };
  views.put(first, s, false, false);
  expect(first.bars?.bars.length).toBeGreaterThan(2000);
  const again: Patch = { do: "patch", seq: 0 };
  views.put(again, s, false, false);
  expect(again.bars).toBeUndefined();
});
