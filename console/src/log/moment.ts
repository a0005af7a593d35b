import type { Folds } from "./folds.ts";
import { apart, type Frame } from "./history.ts";
import { agrees } from "./image.ts";
import { Pursuit } from "./pursuit.ts";
import type { Reader } from "./reader.ts";
import { stateOf } from "./states.ts";
import type { Tail } from "./tail.ts";

/** What a moment tells others of. */
export interface MomentCalls {
  /** Something has changed. */
  changed(): void;
  /** The server's snapshot after an event says something else than the events do. */
  differs(seq: number): void;
}

/** The moment of a log that somebody wants to see, and what there is to see of it. */
export class Moment {
  /** The state that is shown: of the moment, or of one that was wanted before until that is here. */
  frame: Frame | undefined;
  private readonly way = new Pursuit();

  constructor(
    /** The event that is wanted; undefined: the last one. */
    public at: number | undefined,
    private readonly folds: Folds,
    private readonly reader: Pick<Reader, "first" | "snapshot">,
    private readonly tail: Pick<Tail, "head">,
    private readonly calls: MomentCalls,
  ) {}

  /** The event that is wanted if it is not the last one. */
  get past(): number | undefined {
    return this.at !== undefined && this.at < this.tail.head ? this.at : undefined;
  }

  get inPast(): boolean {
    return this.past !== undefined;
  }

  /** Goes to an event. Of several that are asked for meanwhile the last one is next. */
  async seek(at: number | undefined): Promise<void> {
    this.at = at;
    if (!this.inPast) this.frame = undefined;
    this.calls.changed();
    let gone: number | undefined; // the event that was made last, if it has expired
    const go = async (to: number) => {
      const frame = await this.make(Math.max(to, this.reader.first));
      if (!this.inPast) return;
      this.show(frame);
      gone = frame.seq === to ? undefined : to;
    };
    await this.way.run(() => {
      const to = this.past;
      return to === undefined || to === gone || to === this.frame?.seq ? undefined : go(to);
    });
  }

  /** Makes the state again, of more events than were there before. */
  async again(): Promise<void> {
    if (!this.inPast) return;
    this.frame = undefined;
    await this.seek(this.at);
  }

  /** Goes to an event while nothing of the log is here: shows what the server says until the events are here. */
  async arrive(seq: number): Promise<void> {
    const s = this.folds.team ? undefined : await this.reader.snapshot(seq);
    const glance: Frame | undefined = s && { base: s.base, seq: s.seq, state: stateOf(s), loose: true, place: s };
    if (glance && this.at === seq && !this.frame) this.frame = glance;
    await this.seek(this.at);
    if (!s || !glance) return;
    const own = await this.folds.from(s.base, s.seq);
    if (!agrees(s, own.state.image)) this.calls.differs(seq);
    if (this.frame === glance && glance.seq === s.seq) this.show(own); // unless another moment is shown meanwhile
  }

  private show(f: Frame): void {
    this.frame = f;
    this.calls.changed();
  }

  /** The state after an event: of the nearest one that is kept and the events since. */
  private async make(seq: number): Promise<Frame> {
    const { frame } = this;
    const kept = this.folds.history.best(seq);
    const goesOn = frame && goesFurther(frame, kept, seq);
    const from = goesOn ? frame : kept;
    if (this.folds.kind === "session" && (!from || seq - from.seq >= apart)) return this.folds.near(seq);
    if (!from) return this.folds.from(this.reader.first, seq);
    const f = goesOn ? from : { ...from, state: from.state.fork() };
    if (goesOn) this.frame = undefined; // it changes from here on
    await this.folds.extend(f, seq);
    return f;
  }
}

/** Whether a state is a better one to go on from to an event than one that is kept. */
function goesFurther(f: Frame, kept: Frame | undefined, seq: number): boolean {
  return f.seq <= seq && (!kept || (f.base <= kept.base && f.seq >= kept.seq));
}
