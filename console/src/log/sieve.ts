import { Filter } from "./lines.ts";
import type { Store } from "./store.ts";

/** Longest time without a report, in milliseconds. */
const maxWait = 200;

/** Looks for the events that fit a text, a part of them at a time, so that nothing else waits. */
export class Sieve {
  private filter: Filter | undefined;
  private sifting = false;

  constructor(
    private readonly store: Store,
    private readonly leave: AbortSignal,
    private readonly tell: (text: string, seqs: Uint32Array<ArrayBuffer>) => void,
  ) {}

  /** Looks for another text; empty: for none. */
  set(text: string): void {
    this.filter = text === "" ? undefined : new Filter(text, this.store, this.store.numbers);
    this.sift();
  }

  /** Another event is here. */
  note(seq: number): void {
    this.filter?.note(seq);
    this.sift();
  }

  private sift(): void {
    if (this.sifting || !this.filter) return;
    this.sifting = true;
    const began = Date.now();
    const work = () => {
      const f = this.filter;
      if (!f || this.leave.aborted) {
        this.sifting = false;
        return;
      }
      const more = f.step();
      if (!more || Date.now() - began > maxWait) {
        this.tell(f.text, f.found);
        this.sifting = false;
        if (more) this.sift();
      } else setTimeout(work);
    };
    setTimeout(work);
  }
}
