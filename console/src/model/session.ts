import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { type CanonicalEvent, type Session, WaggleError } from "@waggle-dev/client";
import { emptyView, type View, ViewBuilder } from "@waggle-dev/client/view";
import { client, refusedLogin } from "../app.ts";
import { whileShown } from "./live.ts";

/** One session as this page reads it: its log, and what follows from any prefix of it. */
export class SessionModel {
  /** The events of the log, in order. The array grows in place; `head` changes with it. */
  readonly events: CanonicalEvent[] = [];
  /** The sequence of the newest event that is here. */
  readonly head = signal(0);
  /** The first sequence that the server still had. */
  readonly first = signal(1);
  /** Up to where views show the log; undefined: to its end, live. */
  readonly at = signal<number | undefined>(undefined);
  readonly connected = signal(false);
  /** Why the log cannot be read. */
  readonly error = signal<unknown>(undefined);
  /** The conversation as of `at`. */
  readonly view: ReadonlySignal<View>;
  private readonly session: Session;
  private live = new ViewBuilder();
  private folded = 0;
  private past: { builder: ViewBuilder; folded: number } | undefined;
  private waiting: CanonicalEvent[] = [];
  private frame = 0;
  private leave: () => void = () => {};

  constructor(
    readonly id: string,
    /** Nobody has used the id yet: the log begins with the first message. */
    public fresh = false,
  ) {
    this.session = client.sessions.open(id, { fresh });
    this.view = computed(() => this.fold(this.head.value, this.at.value));
    if (!fresh) this.read();
  }

  /** Begins to read the log. */
  read(): void {
    this.fresh = false;
    this.leave();
    this.error.value = undefined;
    this.leave = whileShown((signal) => this.follow(signal));
  }

  private async follow(signal: AbortSignal): Promise<void> {
    try {
      const log = this.session.events({
        after: this.events.length > 0 || this.waiting.length > 0 ? this.last() : 0,
        signal,
        onConnection: (up) => {
          this.connected.value = up;
        },
        onExpired: (first) => {
          this.first.value = first;
        },
      });
      for await (const e of log) this.take(e);
    } catch (error) {
      if (!signal.aborted && !refusedLogin(error)) this.error.value = error;
    }
  }

  private last(): number {
    return (this.waiting.at(-1) ?? this.events.at(-1))?.sequence ?? 0;
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
  private fold(head: number, at: number | undefined): View {
    if (at === undefined || at >= head) {
      for (; this.folded < this.events.length; this.folded++) this.live.take(this.events[this.folded] as CanonicalEvent);
      return this.live.view;
    }
    const until = this.count(at);
    if (this.past === undefined || this.past.folded > until) this.past = { builder: new ViewBuilder(), folded: 0 };
    const p = this.past;
    for (; p.folded < until; p.folded++) p.builder.take(this.events[p.folded] as CanonicalEvent);
    return until === 0 ? emptyView : p.builder.view;
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

  /** When a question of the log ends by itself. */
  ends(question: string): string | undefined {
    for (let i = this.events.length - 1; i >= 0; i--) {
      const e = this.events[i] as CanonicalEvent;
      if (e.type !== "input.requested" || e.data.input_id !== question) continue;
      const seconds = e.data.timeout_seconds;
      return seconds ? new Date(Date.parse(e.time) + seconds * 1000).toISOString() : undefined;
    }
    return undefined;
  }

  /** Whether there is no such session, or the principal may not see it. */
  get missing(): boolean {
    const e = this.error.value;
    return e instanceof WaggleError && (e.status === 404 || e.status === 410);
  }

  close(): void {
    this.leave();
    this.session.close();
  }
}
