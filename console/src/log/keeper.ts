import type { CanonicalEvent, LogPage, TeamView, WaggleApi } from "@waggle-dev/client";
import type { Definition } from "../fold/team.ts";
import type { News } from "../live/protocol.ts";
import type { Tap } from "../live/tap.ts";
import { CutFinder } from "./cut.ts";
import { faultOf } from "./fault.ts";
import { apart, type Frame, History } from "./history.ts";
import { agrees } from "./image.ts";
import { Marks, rowOf } from "./lines.ts";
import type { Extent, Opening, Part, Report, Summary } from "./protocol.ts";
import { Reader } from "./reader.ts";
import { Sieve } from "./sieve.ts";
import { emptyState, type State, stateOf } from "./states.ts";
import { pageOf, pageSize, Store } from "./store.ts";
import { mostBars, type Patch, Views } from "./views.ts";

/** The first page is smaller than the others: it is what somebody waits for. */
const firstPage = 500;
/** Between two patches pass so many milliseconds. */
const rest = 33;

type Tell = (r: Report extends infer R ? (R extends unknown ? Omit<R, "log"> : never) : never) => void;

/** One log: what of it is here, and what follows from it up to the event that is shown. */
export class Keeper {
  private readonly leave = new AbortController();
  private readonly store = new Store();
  private readonly history = new History();
  private readonly marks = new Marks();
  private readonly filter = new Sieve(this.store, this.leave.signal, (text, seqs) => this.tell({ do: "filtered", text, seqs }));
  private readonly reader: Reader;
  private readonly views: Views;
  /** The newest event that is known. */
  private head = 0;
  private newest: CanonicalEvent | undefined;
  /** The state at the end of the log. Until it is known, `sketch` shows what has begun in the events that are here. */
  private live: Frame | undefined;
  private sketch: Frame | undefined;
  /** The state as of `at`. */
  private past: Frame | undefined;
  private at: number | undefined;
  /** The fold of the whole log, as far as it has come; undefined: it has not begun, or `live` is it. */
  private prefix: Frame | undefined;
  private reading: AbortController | undefined;
  /** Stops following the end of the log. */
  private following: (() => void) | undefined;
  /** The name of a session whose first message is not here. */
  private name = "";
  /** The members of a team whose beginning has expired. */
  private team: Definition | undefined;
  private begun: Promise<void> = Promise.resolve();
  private seeking = false;
  private advancing = false;
  private lowering = false;

  constructor(
    private readonly client: WaggleApi,
    private readonly tap: Tap,
    private readonly o: Opening,
    private readonly tell: Tell,
  ) {
    this.at = o.at;
    this.views = new Views(o.part, o.member);
    this.reader = new Reader(client, o.kind, o.id, this.store, this.leave.signal, (e) => this.note(e));
  }

  /** Reads what is shown first: the newest events, or those before the event that the log is shown at. */
  async open(): Promise<void> {
    const begun = this.begin();
    this.begun = begun.catch(() => {});
    await begun;
    if (this.o.fresh) return;
    if (this.o.kind !== "session") {
      this.whole(true); // a member's state may be as old as the team, and a task is its whole log
      return;
    }
    const { base, state, seq } = await this.near(this.head, (f) => {
      if (!this.inPast) this.sketch = f;
    });
    this.live ??= { base, state, seq }; // unless all of the log has been read meanwhile
    this.sketch = undefined;
    await this.advance();
    this.dirty();
    if (base > this.reader.first) this.run(() => this.early(base));
  }

  private async begin(): Promise<void> {
    if (this.o.fresh) {
      this.live = { base: 1, seq: 0, state: this.empty() };
      return;
    }
    this.head = (await this.reader.head()).last;
    if (this.o.kind === "team" && this.reader.first > 1)
      this.team = (await this.client.call<TeamView>("GET", `/api/v1/teams/${encodeURIComponent(this.o.id)}`)).definition;
    this.dirty();
    if (this.inPast) this.run(() => this.arrive(Math.max(this.at as number, this.reader.first)));
    await this.reader.newest(this.head, firstPage);
    this.newest = this.store.get(this.head);
    this.dirty();
  }

  private empty(): State {
    return emptyState(this.o.kind, this.team);
  }

  close(): void {
    this.leave.abort();
    this.reading?.abort();
    this.unfollow();
    clearTimeout(this.timer);
  }

  /** Does something that the page does not wait for, and tells it of a failure. */
  run(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      if (!this.leave.signal.aborted) this.tell({ do: "error", error: faultOf(error) });
    });
  }

  // What comes

  /** Follows the end of the log from what is here. */
  async follow(): Promise<void> {
    if (this.following) return;
    const begins = () => {};
    this.following = begins;
    await this.begun;
    if (this.following !== begins || (this.head === 0 && !this.o.fresh)) return;
    this.following = this.tap.follow(`${this.o.kind}/${this.o.id}`, this.head, (n) => this.hear(n));
  }

  unfollow(): void {
    this.following?.();
    this.following = undefined;
  }

  private hear(n: News): void {
    if (n.do === "event") this.take(n.event);
    else if (n.do === "head") this.reach(n.seq);
    else if (n.do === "first") {
      this.reader.first = n.seq;
      if (this.live?.seq === 0) this.live = { base: n.seq, seq: n.seq - 1, state: this.live.state };
    } else if (n.do === "over") {
      this.following = undefined;
      this.tell({ do: "error", error: n.error });
    }
  }

  /** The log goes on to an event that is not here. */
  private reach(seq: number): void {
    if (seq <= this.head) return;
    this.head = seq;
    this.run(() => this.advance());
    this.dirty();
  }

  private note(e: CanonicalEvent): void {
    this.marks.note(e);
    this.filter.note(e.sequence);
  }

  private take(e: CanonicalEvent): void {
    if (e.sequence <= this.head) return; // it was among those that were read
    this.store.put(e);
    this.note(e);
    this.head = e.sequence;
    this.newest = e;
    const live = this.live;
    if (live && live.seq + 1 === (e.from ?? e.sequence)) this.step(live, e);
    else if (live) this.run(() => this.advance());
    this.dirty();
  }

  /** Takes an event into a state, and keeps the state now and then. */
  private step(f: Frame, e: CanonicalEvent): void {
    f.state.take(e);
    const before = f.seq;
    f.seq = e.sequence;
    if (Math.floor(before / apart) !== Math.floor(f.seq / apart) && !f.loose) this.history.keep(f);
    if (f === this.live && f.base > this.reader.first && this.strange(f, e)) this.whole(true);
  }

  /** Whether an event is about a run that began before all that a state was made of: it needs more of the log then. */
  private strange(f: Frame, e: CanonicalEvent): boolean {
    const run = (e.data as { run_id?: string }).run_id;
    return run !== undefined && !f.state.knows(run);
  }

  /** Brings the state at the end of the log to its end. */
  private async advance(): Promise<void> {
    if (this.advancing || !this.live) return;
    this.advancing = true;
    try {
      for (let live: Frame = this.live; live.seq < this.head; live = this.live)
        await this.fold(live, Math.min(this.head, live.seq + apart));
    } finally {
      this.advancing = false;
    }
    this.dirty();
  }

  /** Folds events of the log into a state, up to one of them. */
  private async fold(f: Frame, to: number, urgent = true): Promise<void> {
    while (f.seq < to) {
      const seq = Math.max(f.seq + 1, this.reader.first);
      if (seq > to) return;
      await this.reader.ensure(seq, to, urgent);
      this.leave.signal.throwIfAborted();
      for (let n = Math.max(seq, this.reader.first); n <= to; n++) {
        const e = n > f.seq ? this.store.get(n) : undefined;
        if (e) this.step(f, e);
        else if (n > f.seq) break; // it has gone again: others needed the room
      }
    }
  }

  // Moments

  private get inPast(): boolean {
    return this.at !== undefined && this.at < this.head;
  }

  /** What is shown: undefined while it is being read. */
  private get shown(): Frame | undefined {
    return this.inPast ? this.past : (this.live ?? this.sketch);
  }

  /** Shows the log as of an event. Of several that are asked for meanwhile the last one is next. */
  async seek(at: number | undefined): Promise<void> {
    if (at !== this.at) this.views.end();
    this.at = at;
    if (!this.inPast) this.past = undefined;
    this.dirty();
    if (this.seeking) return;
    this.seeking = true;
    try {
      while (this.inPast && this.past?.seq !== this.at) {
        const wanted = this.at as number;
        const frame = await this.moment(Math.max(wanted, this.reader.first));
        if (!this.inPast) break;
        this.past = frame;
        this.dirty();
        if (frame.seq !== wanted && this.at === wanted) break; // older events have expired
      }
    } finally {
      this.seeking = false;
    }
  }

  /** Shows the log as of an event while nothing of it is here: what the server says, until the events are here. */
  private async arrive(seq: number): Promise<void> {
    const s = this.team ? undefined : await this.reader.snapshot(seq);
    const glance: Frame | undefined = s && { base: s.base, seq: s.seq, state: stateOf(s), loose: true, place: s };
    if (glance && this.at === seq && !this.past) this.past = glance;
    await this.seek(this.at);
    if (!s || !glance) return;
    const own = await this.from(s.base, s.seq);
    if (!agrees(s, own.state.image)) this.tell({ do: "differs", seq });
    if (this.past !== glance || glance.seq !== s.seq) return; // the page shows another moment meanwhile
    this.past = own;
    this.dirty();
  }

  /** The state after an event: of the nearest one that is kept and the events since. */
  private async moment(seq: number): Promise<Frame> {
    const kept = this.history.best(seq);
    const past = this.past;
    const goesOn = past && past.seq <= seq && (!kept || (past.base <= kept.base && past.seq >= kept.seq));
    const from = goesOn ? past : kept;
    if (this.o.kind === "session" && (!from || seq - from.seq >= apart)) return this.near(seq);
    if (!from) return this.from(this.reader.first, seq);
    const f = goesOn ? from : { ...from, state: from.state.fork() };
    if (goesOn) this.past = undefined; // it changes from here on
    await this.fold(f, seq);
    return f;
  }

  /** The state after an event of the fewest events that show its end as all of them would. */
  private async near(seq: number, sketch?: (f: Frame) => void): Promise<Frame> {
    const finder = new CutFinder();
    let begin = Math.max(this.reader.first, seq - firstPage + 1);
    for (let end = seq; ; ) {
      await this.reader.ensure(begin, end);
      this.leave.signal.throwIfAborted();
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
    this.dirty();
    return f;
  }

  /** The state of the events from one to another. */
  private async from(base: number, seq: number): Promise<Frame> {
    const f: Frame = { base, seq: base - 1, state: this.empty() };
    await this.fold(f, seq);
    return f;
  }

  // The rest of the log

  /** What a head line says of all events, without reading them all: the first message, and calls with an unknown outcome. */
  private async early(base: number): Promise<void> {
    const [first] = (await this.reader.page("after=0&types=message.received&limit=1", false)).events;
    if (first?.type === "message.received") this.name = first.data.content;
    this.dirty();
    for (let before = String(base); ; ) {
      const page: LogPage & { events: CanonicalEvent[] } = await this.reader.page(`before=${before}&types=tool.unknown&limit=1000`, false);
      for (const e of page.events) this.marks.note(e);
      this.dirty();
      if (!page.more || !page.next || this.done || this.reading) return; // who reads all sees these, too
      before = page.next;
    }
  }

  private get done(): boolean {
    return this.live !== undefined && this.live.base <= this.reader.first;
  }

  /** Reads the whole log in the background, or stops it. */
  whole(on: boolean): void {
    if (!on) {
      this.reading?.abort();
      this.reading = undefined;
      this.dirty();
    } else if (!this.reading && !this.done && this.head > 0) {
      const stop = new AbortController();
      this.reading = stop;
      this.run(() => this.readAll(stop.signal));
    }
  }

  private async readAll(stop: AbortSignal): Promise<void> {
    this.prefix ??= { base: this.reader.first, seq: this.reader.first - 1, state: this.empty() };
    const f = this.prefix;
    try {
      while (f.seq < this.head) {
        const to = Math.min(this.head, (pageOf(f.seq + 1) + 1) * pageSize);
        if (to < this.head) void this.reader.ensure(to + 1, Math.min(this.head, to + pageSize), false).catch(() => {}); // the next round reports it
        await this.fold(f, to, false);
        this.dirty();
        if (stop.aborted) return;
      }
      this.live = f;
      this.sketch = undefined;
      this.prefix = undefined;
      if (this.inPast) {
        this.past = undefined;
        await this.seek(this.at);
      }
    } finally {
      if (this.reading?.signal === stop) this.reading = undefined;
      this.dirty();
    }
  }

  // What the page asks for

  show(part: Part, member: string): void {
    this.views.part = part;
    this.views.member = member;
    const f = this.shown;
    if (part === "waterfall" && f && f.base > this.reader.first && f.state.bars.bars.length < mostBars) this.whole(true);
    this.dirty();
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
    this.dirty();
  }

  /** Shows other messages of a team. */
  arrows(from: number, to: number): void {
    this.views.show(from, to);
    this.dirty();
  }

  /** Has what is shown begin earlier. */
  private async lower(f: Frame): Promise<void> {
    if (this.lowering) return;
    this.lowering = true;
    try {
      const { base } = await this.near(f.base - 1);
      const longer = await this.from(base, f.seq);
      if (f === this.past) this.past = longer;
      else if (this.live && this.live.base > base) {
        this.live = longer;
        await this.advance();
      }
    } finally {
      this.lowering = false;
    }
    this.whole(true);
  }

  /** Looks for the events that fit a text, in all of the log. */
  sieve(text: string): void {
    this.filter.set(text);
    if (text !== "") this.whole(true);
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

  // Patches

  private timer: ReturnType<typeof setTimeout> | undefined;
  private flushed = 0;
  private sent = { extent: "", at: 0 };

  /** Something has changed: the page learns of it soon, with all that changes until then. */
  private dirty(): void {
    if (this.timer !== undefined || this.leave.signal.aborted) return;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.flushed = performance.now();
        this.flush();
      },
      Math.max(0, this.flushed + rest - performance.now()),
    );
  }

  private flush(): void {
    const patch: Patch = { do: "patch", seq: this.shown?.seq ?? 0 };
    this.putExtent(patch);
    if (this.marks.changed) patch.marks = this.marks.take();
    const f = this.shown;
    if (f) this.putView(patch, f);
    this.tell(patch);
  }

  private putExtent(patch: Patch): void {
    const first = this.reader.first;
    const read = this.done ? this.head : (this.prefix?.seq ?? first - 1);
    const extent: Extent = { first, head: this.head, read: Math.max(0, read - first + 1), reading: this.reading !== undefined };
    const text = JSON.stringify(extent);
    if (text === this.sent.extent) return;
    this.sent.extent = text;
    patch.extent = extent;
  }

  private putView(patch: Patch, f: Frame): void {
    const older = f.base > this.reader.first;
    this.views.put(patch, f.state, older, f === this.sketch);
    const summary: Summary = f.state.summary;
    if (older) {
      summary.name = this.name || summary.name;
      summary.unknowns += this.marks.unknowns(f.base);
    }
    this.views.putSummary(patch, summary);
    if (f.seq !== this.sent.at) {
      const e = f.seq === f.place?.seq ? f.place : f.seq === this.newest?.sequence ? this.newest : this.store.get(f.seq);
      if (e) patch.at = { seq: f.seq, time: e.time, type: e.type };
      this.sent.at = f.seq;
    }
  }
}
