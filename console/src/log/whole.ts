import type { Folds } from "./folds.ts";
import type { Frame } from "./history.ts";
import type { Reader } from "./reader.ts";
import { pageOf, pageSize } from "./store.ts";
import type { Tail } from "./tail.ts";

/** What the reading of a whole log tells others of. */
export interface WholeCalls {
  /** Does something that nobody waits for. */
  run(work: () => Promise<void>): void;
  /** Something has changed. */
  changed(): void;
  /** All has been read: this is the state of it. */
  done(f: Frame): Promise<void>;
}

/** Reads the whole of a log in the background. */
export class Whole {
  /** The state of what has been read; undefined: it has not begun, or all has been read. */
  private frame: Frame | undefined;
  private reading: AbortController | undefined;

  constructor(
    private readonly folds: Folds,
    private readonly reader: Pick<Reader, "first" | "ensure">,
    private readonly tail: Pick<Tail, "head" | "complete">,
    private readonly calls: WholeCalls,
  ) {}

  /** Whether it is under way. */
  get on(): boolean {
    return this.reading !== undefined;
  }

  /** How many events have been read. */
  get read(): number {
    const before = this.reader.first - 1;
    const last = this.tail.complete ? this.tail.head : (this.frame?.seq ?? before);
    return Math.max(0, last - before);
  }

  start(): void {
    if (this.reading || this.tail.complete || this.tail.head === 0) return;
    const stop = new AbortController();
    this.reading = stop;
    this.calls.run(() => this.work(stop));
  }

  /** Stops it. What has been read stays. */
  stop(): void {
    this.reading?.abort();
    this.reading = undefined;
    this.calls.changed();
  }

  private async work(stop: AbortController): Promise<void> {
    const { reader, tail } = this;
    this.frame ??= { base: reader.first, seq: reader.first - 1, state: this.folds.empty() };
    const f = this.frame;
    try {
      while (f.seq < tail.head) {
        const to = Math.min(tail.head, (pageOf(f.seq + 1) + 1) * pageSize);
        if (to < tail.head) void reader.ensure(to + 1, Math.min(tail.head, to + pageSize), false).catch(() => {}); // the next round reports it
        await this.folds.extend(f, to, false);
        this.calls.changed();
        if (stop.signal.aborted) return;
      }
      this.frame = undefined;
      await this.calls.done(f);
    } finally {
      if (this.reading === stop) this.reading = undefined;
      this.calls.changed();
    }
  }
}
