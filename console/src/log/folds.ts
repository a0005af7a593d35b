import type { CanonicalEvent } from "@waggle-dev/client";
import type { Definition } from "../fold/team.ts";
import { CutFinder } from "./cut.ts";
import { apart, type Frame, History } from "./history.ts";
import type { Kind } from "./protocol.ts";
import type { Reader } from "./reader.ts";
import { emptyState, type State } from "./states.ts";
import { pageSize, type Store } from "./store.ts";

/** The first page is smaller than the others: it is what somebody waits for. */
export const firstPage = 500;

/** Makes states of the events of a log, which it has read where they are not here. */
export class Folds {
  readonly history = new History();
  /** The members of a team whose beginning has expired. */
  team: Definition | undefined;

  constructor(
    readonly kind: Kind,
    private readonly reader: Pick<Reader, "first" | "ensure">,
    private readonly store: Pick<Store, "get">,
    private readonly leave: AbortSignal,
  ) {}

  /** The state before the first of all events. */
  empty(): State {
    return emptyState(this.kind, this.team);
  }

  /** Takes an event into a state, and keeps the state now and then. */
  step(f: Frame, e: CanonicalEvent): void {
    f.state.take(e);
    const before = f.seq;
    f.seq = e.sequence;
    if (Math.floor(before / apart) !== Math.floor(f.seq / apart) && !f.loose) this.history.keep(f);
  }

  /** Takes the events up to one of them into a state. */
  async extend(f: Frame, to: number, urgent = true, taken?: (e: CanonicalEvent) => void): Promise<void> {
    while (f.seq < to) {
      const seq = Math.max(f.seq + 1, this.reader.first);
      if (seq > to) return;
      await this.reader.ensure(seq, to, urgent);
      this.leave.throwIfAborted();
      for (let n = Math.max(seq, this.reader.first); n <= to; n++) {
        const e = n > f.seq ? this.store.get(n) : undefined;
        if (e) {
          this.step(f, e);
          taken?.(e);
        } else if (n > f.seq) break; // it has gone again: others needed the room
      }
    }
  }

  /** The state of the events from one to another. */
  async from(base: number, seq: number): Promise<Frame> {
    const f: Frame = { base, seq: base - 1, state: this.empty() };
    await this.extend(f, seq);
    return f;
  }

  /** The state after an event of the fewest events that show its end as all of them would. */
  async near(seq: number, sketch?: (f: Frame) => void): Promise<Frame> {
    const finder = new CutFinder();
    let begin = Math.max(this.reader.first, seq - firstPage + 1);
    for (let end = seq; ; ) {
      await this.reader.ensure(begin, end);
      this.leave.throwIfAborted();
      begin = Math.max(begin, this.reader.first);
      for (let n = end; n >= begin; n--) {
        const e = this.store.get(n);
        if (e) finder.take(e);
      }
      if (begin === this.reader.first || finder.found !== undefined) break;
      if (sketch && end === seq) sketch(this.outline(begin, seq));
      end = begin - 1;
      begin = Math.max(this.reader.first, begin - pageSize);
    }
    return this.from(begin === this.reader.first ? begin : (finder.found as number), seq);
  }

  /** What has begun in the events from one to another, while those before them are being read. */
  private outline(from: number, to: number): Frame {
    const f: Frame = { base: from, seq: to, state: this.empty(), loose: true };
    const begun = new Set<string>();
    for (let seq = from; seq <= to; seq++) {
      const e = this.store.get(seq);
      if (e?.type === "message.started") begun.add(e.data.message_id);
      if (e && ((e.type !== "message.delta" && e.type !== "reasoning.delta") || begun.has(e.data.message_id))) f.state.take(e);
    }
    return f;
  }
}
