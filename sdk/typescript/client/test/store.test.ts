import type { CanonicalEvent, ConnectionState, Watched } from "@waggle-dev/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Store } from "../src/store.js";

// What all hooks are made of, without React: one reading of a log for all the components that show it.

/** A log that a test writes. */
class Log {
  closed = false;
  private readonly takers: ((e: CanonicalEvent) => void)[] = [];
  private readonly told: ((s: ConnectionState) => void)[] = [];
  on = (f: (e: CanonicalEvent) => void) => {
    this.takers.push(f);
    return () => {};
  };
  onConnection = (f: (s: ConnectionState) => void) => {
    this.told.push(f);
    return () => {};
  };
  close = () => {
    this.closed = true;
  };
  put(...sequences: number[]): void {
    for (const sequence of sequences) for (const f of this.takers) f({ sequence } as CanonicalEvent);
  }
  connect(connected: boolean): void {
    for (const f of this.told) f({ connected, error: undefined, ended: false });
  }
}

class Builder {
  view: readonly number[] = [];
  take(e: CanonicalEvent): void {
    this.view = [...this.view, e.sequence];
  }
}

let logs: Log[];
let forgotten: number;
let store: Store<Watched, readonly number[]>;
const log = () => logs.at(-1) as Log;

beforeEach(() => {
  vi.useFakeTimers();
  logs = [];
  forgotten = 0;
  store = new Store<Watched, readonly number[]>(
    () => {
      logs.push(new Log());
      return log() as unknown as Watched;
    },
    () => new Builder(),
    () => forgotten++,
  );
});
afterEach(() => {
  vi.useRealTimers();
});

test("many events change what is shown once, for every component, over one reading", () => {
  const renders = [0, 0];
  const leave = renders.map((_, i) =>
    store.subscribe(() => {
      renders[i] = (renders[i] ?? 0) + 1;
    }),
  );
  log().put(1, 2, 3);
  const before = store.snapshot();
  expect(before.view).toEqual([]);
  expect(store.snapshot()).toBe(before); // the same value as long as nothing has changed, as React wants it
  vi.runAllTimers();
  expect(renders).toEqual([1, 1]);
  expect(store.snapshot().view).toEqual([1, 2, 3]);
  log().connect(true);
  expect(store.snapshot()).toMatchObject({ view: [1, 2, 3], connection: { connected: true } });
  leave[0]?.();
  log().put(4);
  vi.runAllTimers();
  expect(renders).toEqual([2, 3]);
  expect(logs).toHaveLength(1);
});

test("a component that is mounted again at once goes on with the same reading; the last one that goes ends it", () => {
  store.subscribe(() => {})(); // as React's strict mode does it
  const leave = store.subscribe(() => {});
  log().put(1);
  vi.runAllTimers();
  expect([logs.length, forgotten, log().closed]).toEqual([1, 0, false]);
  expect(store.snapshot().view).toEqual([1]);
  leave();
  vi.runAllTimers();
  expect([forgotten, log().closed]).toEqual([1, true]);
  store.subscribe(() => {});
  log().put(1, 2);
  vi.runAllTimers();
  expect(logs).toHaveLength(2);
  expect(store.snapshot().view).toEqual([1, 2]); // from the beginning
});
