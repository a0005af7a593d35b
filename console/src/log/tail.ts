import type { CanonicalEvent } from "@waggle-dev/client";
import type { Folds } from "./folds.ts";
import { apart, type Frame } from "./history.ts";
import { Pursuit } from "./pursuit.ts";
import type { Reader } from "./reader.ts";

/** What the end of a log tells others of. */
export interface TailCalls {
  /** Does something that nobody waits for. */
  run(work: () => Promise<void>): void;
  /** Something has changed. */
  changed(): void;
  /** An event is about a run that began before all that the state was made of: it needs more of the log. */
  strange(): void;
}

/** The end of a log: how far the log goes, and the state there. */
export class Tail {
  /** The newest event that is known. */
  head = 0;
  newest: CanonicalEvent | undefined;
  /** The state at the end. Until it is known, `sketch` shows what has begun in the events that are here. */
  frame: Frame | undefined;
  sketch: Frame | undefined;
  private readonly way = new Pursuit();

  constructor(
    private readonly folds: Folds,
    private readonly reader: Pick<Reader, "first">,
    private readonly calls: TailCalls,
  ) {}

  /** The state that is shown. */
  get shown(): Frame | undefined {
    return this.frame ?? this.sketch;
  }

  /** Whether the state is made of all events. */
  get complete(): boolean {
    return this.frame !== undefined && this.frame.base <= this.reader.first;
  }

  /** Has a state from which it goes on. */
  set(f: Frame): void {
    this.frame = f;
    this.sketch = undefined;
  }

  /** The log begins with an event. */
  begin(seq: number): void {
    if (this.frame?.seq === 0) this.frame = { base: seq, seq: seq - 1, state: this.frame.state };
  }

  /** The log goes on to an event that is not here. */
  reach(seq: number): void {
    if (seq <= this.head) return;
    this.head = seq;
    this.calls.run(() => this.advance());
    this.calls.changed();
  }

  /** The log goes on with an event. */
  take(e: CanonicalEvent): void {
    this.head = e.sequence;
    this.newest = e;
    const { frame } = this;
    if (frame && frame.seq + 1 === (e.from ?? e.sequence)) {
      this.folds.step(frame, e);
      this.check(frame, e);
    } else if (frame) this.calls.run(() => this.advance());
    this.calls.changed();
  }

  /** Brings the state to the end. */
  async advance(): Promise<void> {
    await this.way.run(() => {
      const { frame } = this;
      if (frame && frame.seq < this.head)
        return this.folds.extend(frame, Math.min(this.head, frame.seq + apart), true, (e) => this.check(frame, e));
      if (frame) this.calls.changed();
      return undefined;
    });
  }

  private check(f: Frame, e: CanonicalEvent): void {
    const run = (e.data as { run_id?: string }).run_id;
    if (f === this.frame && !this.complete && run !== undefined && !f.state.knows(run)) this.calls.strange();
  }
}
