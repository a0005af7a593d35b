import type { CanonicalEvent, Snapshot } from "@waggle-dev/client";
import { Folds } from "../src/log/folds.ts";
import type { Kind } from "../src/log/protocol.ts";
import { emptyState, type State } from "../src/log/states.ts";
import { Store } from "../src/log/store.ts";
import { Session } from "./session.ts";

/** A session of short runs, each of which is over before the next message. */
export function turns(n: number): CanonicalEvent[] {
  const s = new Session();
  for (let i = 0; i < n; i++) for (const what of ["ask", "work", "piece", "piece", "tool", "end"]) s.do(what, 5 + (i % 3));
  return s.events;
}

/** The fold of events. */
export function fold(events: readonly CanonicalEvent[]): State {
  const s = emptyState("session");
  for (const e of events) s.take(e);
  return s;
}

/** A log that is read in place of a reader: what is asked for is noted, and can be held back. */
export class Shelf {
  first = 1;
  readonly store = new Store();
  readonly folds: Folds;
  readonly leave = new AbortController();
  /** The stretches that were asked for. */
  readonly asked: [from: number, to: number][] = [];
  said: Snapshot | undefined;
  /** Awaited before events come. */
  gate: Promise<void> = Promise.resolve();

  constructor(
    readonly events: readonly CanonicalEvent[],
    kind: Kind = "session",
  ) {
    this.folds = new Folds(kind, this, this.store, this.leave.signal);
  }

  ensure = async (from: number, to: number): Promise<void> => {
    this.asked.push([from, to]);
    await this.gate;
    for (const e of this.events.slice(Math.max(from, this.first) - 1, to)) this.store.put(e);
  };

  snapshot = async (): Promise<Snapshot | undefined> => this.said;

  /** Holds events back until the function that is returned is called. */
  hold(): () => void {
    let go = () => {};
    this.gate = new Promise((resolve) => {
      go = resolve;
    });
    return () => go();
  }
}
