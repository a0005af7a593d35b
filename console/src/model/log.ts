import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { type CanonicalEvent, WaggleError } from "@waggle-dev/client";
import { refusedLogin } from "../app.ts";
import { whileShown } from "./live.ts";

/** What makes a view of events, one after the other. */
export interface Fold<V> {
  readonly view: V;
  take(e: CanonicalEvent): void;
}

/** How the page reads a log. */
export interface Source {
  events(o: { after: number; signal: AbortSignal; onExpired: (first: number) => void }): AsyncIterable<CanonicalEvent>;
  close(): void;
}

/** One log as this page reads it, and what follows from any prefix of it. */
export class LogModel<V> {
  /** The events of the log, in order. The array grows in place; `head` changes with it. */
  readonly events: CanonicalEvent[] = [];
  /** The sequence of the newest event that is here. */
  readonly head = signal(0);
  /** The first sequence that the server still had. */
  readonly first = signal(1);
  /** Up to where views show the log; undefined: to its end, live. */
  readonly at = signal<number | undefined>(undefined);
  /** Why the log cannot be read. */
  readonly error = signal<unknown>(undefined);
  /** The view as of `at`. */
  readonly view: ReadonlySignal<V>;
  private readonly live: Fold<V>;
  private folded = 0;
  private past: { fold: Fold<V>; folded: number } | undefined;
  private waiting: CanonicalEvent[] = [];
  private frame = 0;
  private leave: () => void = () => {};

  constructor(
    readonly id: string,
    private readonly source: Source,
    private readonly make: () => Fold<V>,
  ) {
    this.live = make();
    this.view = computed(() => this.fold(this.head.value, this.at.value));
  }

  /** Begins to read the log. */
  read(): void {
    this.leave();
    this.error.value = undefined;
    this.leave = whileShown((signal) => this.follow(signal));
  }

  private async follow(signal: AbortSignal): Promise<void> {
    try {
      const log = this.source.events({
        after: (this.waiting.at(-1) ?? this.events.at(-1))?.sequence ?? 0,
        signal,
        onExpired: (first) => {
          this.first.value = first;
        },
      });
      for await (const e of log) this.take(e);
    } catch (error) {
      if (!signal.aborted && !refusedLogin(error)) this.error.value = error;
    }
  }

  /** Events come one by one and are shown once a frame. */
  private take(e: CanonicalEvent): void {
    this.waiting.push(e);
    this.frame ||= document.hidden ? window.setTimeout(() => this.flush(), 50) : requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    this.frame = 0;
    this.events.push(...this.waiting.splice(0));
    this.head.value = this.events.at(-1)?.sequence ?? 0;
  }

  /** Folds the log up to a sequence. Going forward goes on where the last fold has ended. */
  private fold(head: number, at: number | undefined): V {
    if (at === undefined || at >= head) {
      for (; this.folded < this.events.length; this.folded++) this.live.take(this.events[this.folded] as CanonicalEvent);
      return this.live.view;
    }
    const until = this.count(at);
    if (this.past === undefined || this.past.folded > until) this.past = { fold: this.make(), folded: 0 };
    const p = this.past;
    for (; p.folded < until; p.folded++) p.fold.take(this.events[p.folded] as CanonicalEvent);
    return p.fold.view;
  }

  /** How many events are not after a sequence. */
  count(at: number): number {
    let low = 0;
    for (let high = this.events.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.events[middle] as CanonicalEvent).sequence <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The events that views show. */
  get visible(): readonly CanonicalEvent[] {
    const at = this.at.value;
    return at === undefined || at >= this.head.value ? this.events : this.events.slice(0, this.count(at));
  }

  /** Whether the views show an earlier moment. */
  get inPast(): boolean {
    return this.at.value !== undefined && this.at.value < this.head.value;
  }

  /** Whether there is no such log, or the principal may not see it. */
  get missing(): boolean {
    const e = this.error.value;
    return e instanceof WaggleError && (e.status === 404 || e.status === 410);
  }

  close(): void {
    this.leave();
    this.source.close();
  }
}

/** Saves the events that views show as lines of JSON. */
export function save(model: LogModel<unknown>): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(
    new Blob(
      model.visible.map((e) => `${JSON.stringify(e)}\n`),
      { type: "application/jsonl" },
    ),
  );
  link.download = `${model.id}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
