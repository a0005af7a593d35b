import type { CanonicalEvent, TeamView, WaggleApi } from "@waggle-dev/client";
import type { News } from "../live/protocol.ts";
import type { Tap } from "../live/tap.ts";
import { faultOf } from "./fault.ts";
import { Folds, firstPage } from "./folds.ts";
import { Following } from "./following.ts";
import { Headline } from "./headline.ts";
import type { Frame } from "./history.ts";
import { Marks, rowOf } from "./lines.ts";
import { Moment } from "./moment.ts";
import type { Opening, Part, Report } from "./protocol.ts";
import { Pulse } from "./pulse.ts";
import { Pursuit } from "./pursuit.ts";
import { Reader } from "./reader.ts";
import { Sieve } from "./sieve.ts";
import { pageOf, Store } from "./store.ts";
import { Tail } from "./tail.ts";
import { fewBars, type Patch, Views } from "./views.ts";
import { Whole } from "./whole.ts";

type Tell = (r: Report extends infer R ? (R extends unknown ? Omit<R, "log"> : never) : never) => void;

/** One log: what of it is here, and what follows from it up to the event that is shown. */
export class Keeper {
  private readonly leave = new AbortController();
  private readonly store = new Store();
  private readonly marks = new Marks();
  private readonly pulse = new Pulse(() => this.flush());
  private readonly lowering = new Pursuit();
  private readonly filter: Sieve;
  private readonly reader: Reader;
  private readonly views: Views;
  private readonly folds: Folds;
  private readonly tail: Tail;
  private readonly moment: Moment;
  private readonly all: Whole;
  private readonly headline: Headline;
  private readonly following: Following;
  private begun: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: WaggleApi,
    tap: Tap,
    private readonly o: Opening,
    private readonly tell: Tell,
  ) {
    const { signal } = this.leave;
    const run = (work: () => Promise<void>) => this.run(work);
    const changed = () => this.pulse.soon();
    this.views = new Views(o.part, o.member);
    this.filter = new Sieve(this.store, signal, (text, seqs) => tell({ do: "filtered", text, seqs }));
    this.reader = new Reader(client, o.kind, o.id, this.store, signal, (e) => this.note(e));
    this.folds = new Folds(o.kind, this.reader, this.store, signal);
    this.tail = new Tail(this.folds, this.reader, { run, changed, strange: () => this.all.start() });
    this.moment = new Moment(o.at, this.folds, this.reader, this.tail, { changed, differs: (seq) => tell({ do: "differs", seq }) });
    this.all = new Whole(this.folds, this.reader, this.tail, { run, changed, done: (f) => this.know(f) });
    this.headline = new Headline(this.reader, this.marks, changed);
    this.following = new Following(tap, `${o.kind}/${o.id}`, (n) => this.hear(n));
  }

  /** Reads what is shown first: the newest events, or those before the event that the log is shown at. */
  async open(): Promise<void> {
    const begun = this.begin();
    this.begun = begun.catch(() => {});
    await begun;
    if (this.o.fresh) return;
    if (this.o.kind !== "session") {
      this.all.start(); // a member's state may be as old as the team, and a task is its whole log
      return;
    }
    const { tail } = this;
    const near = await this.folds.near(tail.head, (f) => {
      if (!this.moment.inPast) tail.sketch = f;
      this.pulse.soon();
    });
    const { base } = near;
    tail.set(tail.frame ?? near); // all of the log may have been read meanwhile
    await tail.advance();
    this.pulse.soon();
    if (base > this.reader.first) this.run(() => this.headline.read(base, () => tail.complete || this.all.on));
  }

  private async begin(): Promise<void> {
    const { moment, reader, tail } = this;
    if (this.o.fresh) {
      tail.set({ base: 1, seq: 0, state: this.folds.empty() });
      return;
    }
    tail.head = (await reader.head()).last;
    if (this.o.kind === "team" && reader.first > 1)
      this.folds.team = (await this.client.call<TeamView>("GET", `/api/v1/teams/${encodeURIComponent(this.o.id)}`)).definition;
    this.pulse.soon();
    const { past } = moment;
    if (past !== undefined) this.run(() => moment.arrive(Math.max(past, reader.first)));
    await reader.newest(tail.head, firstPage);
    tail.newest = this.store.get(tail.head);
    this.pulse.soon();
  }

  close(): void {
    this.leave.abort();
    this.pulse.stop();
    this.all.stop();
    this.following.stop();
  }

  /** Does something that the page does not wait for, and tells it of a failure. */
  run(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      if (!this.leave.signal.aborted) this.tell({ do: "error", error: faultOf(error) });
    });
  }

  /** Follows the end of the log from what is here. */
  follow(): Promise<void> {
    return this.following.start(async () => {
      await this.begun;
      return this.tail.head > 0 || this.o.fresh ? this.tail.head : undefined;
    });
  }

  unfollow(): void {
    this.following.stop();
  }

  private hear(n: News): void {
    if (n.do === "event") this.take(n.event);
    else if (n.do === "head") this.tail.reach(n.seq);
    else if (n.do === "first") {
      this.reader.first = n.seq;
      this.tail.begin(n.seq);
    } else if (n.do === "over") this.tell({ do: "error", error: n.error });
  }

  private take(e: CanonicalEvent): void {
    if (e.sequence <= this.tail.head) return; // it was among those that were read
    this.store.put(e);
    this.note(e);
    this.tail.take(e);
  }

  private note(e: CanonicalEvent): void {
    this.marks.note(e);
    this.filter.note(e.sequence);
  }

  /** The whole log has been read: everything is shown of all of it. */
  private async know(f: Frame): Promise<void> {
    this.tail.set(f);
    await this.moment.again();
  }

  /** What is shown: undefined while it is being read. */
  private get shown(): Frame | undefined {
    return this.moment.inPast ? this.moment.frame : this.tail.shown;
  }

  /** Shows the log as of an event. Of several that are asked for meanwhile the last one is next. */
  async seek(at: number | undefined): Promise<void> {
    if (at !== this.moment.at) this.views.end();
    await this.moment.seek(at);
  }

  /** Reads the whole log in the background, or stops it. */
  whole(on: boolean): void {
    if (on) this.all.start();
    else this.all.stop();
  }

  show(part: Part, member: string): void {
    this.views.part = part;
    this.views.member = member;
    const f = this.shown;
    if (part === "trace" && f && f.base > this.reader.first && f.state.bars.bars.length < fewBars) this.all.start();
    this.pulse.soon();
  }

  /** Moves the window over the conversation. */
  async move(to: "earlier" | "later" | "end"): Promise<void> {
    const f = this.shown;
    if (!f) return;
    const { talk, items } = this.views.conversation(f.state);
    const w = talk.window;
    if (to === "end") w.end();
    else if (to === "later") w.later(items);
    else {
      if (w.over(items).from === 0 && f.base > this.reader.first) await this.lower(f);
      const now = this.views.conversation((this.shown ?? f).state).items;
      w.over(now);
      w.earlier(now);
    }
    this.pulse.soon();
  }

  /** Has what is shown begin earlier. Who wants that while it is being done gets the same. */
  private lower(f: Frame): Promise<void> {
    const works = [() => this.lengthen(f)];
    return this.lowering.run(() => works.pop()?.());
  }

  private async lengthen(f: Frame): Promise<void> {
    const { folds, moment, tail } = this;
    const { base } = await folds.near(f.base - 1);
    const longer = await folds.from(base, f.seq);
    if (f === moment.frame) moment.frame = longer;
    else if (tail.frame && tail.frame.base > base) {
      tail.frame = longer;
      await tail.advance();
    }
    this.all.start();
  }

  /** Shows other messages of a team. */
  arrows(from: number, to: number): void {
    this.views.show(from, to);
    this.pulse.soon();
  }

  /** Looks for the events that fit a text, in all of the log. */
  sieve(text: string): void {
    this.filter.set(text);
    if (text !== "") this.all.start();
  }

  async rows(seqs: readonly number[]): Promise<void> {
    if (seqs.length === 0) return;
    for (const n of new Set(seqs.map(pageOf))) {
      const there = seqs.filter((s) => pageOf(s) === n);
      await this.reader.ensure(Math.min(...there), Math.max(...there));
    }
    const found = seqs.map((s) => this.store.get(s));
    this.tell({ do: "rows", rows: found.filter((e) => e !== undefined).map(rowOf) });
  }

  async event(seq: number): Promise<CanonicalEvent | undefined> {
    await this.reader.ensure(seq, seq);
    return this.store.get(seq);
  }

  /** Tells the page what has changed. */
  private flush(): void {
    const f = this.shown;
    const patch: Patch = { do: "patch", seq: f?.seq ?? 0 };
    const { first } = this.reader;
    this.views.putExtent(patch, { first, head: this.tail.head, read: this.all.read, reading: this.all.on });
    if (this.marks.changed) patch.marks = this.marks.take();
    if (f) this.putView(patch, f);
    this.tell(patch);
  }

  private putView(patch: Patch, f: Frame): void {
    const { newest, sketch } = this.tail;
    const older = f.base > this.reader.first;
    this.views.put(patch, f.state, older, f === sketch);
    const { summary } = f.state;
    if (older) this.headline.complete(summary, f.base);
    this.views.putSummary(patch, summary);
    this.views.putPlace(patch, f.seq, () =>
      f.seq === f.place?.seq ? f.place : f.seq === newest?.sequence ? newest : this.store.get(f.seq),
    );
  }
}
