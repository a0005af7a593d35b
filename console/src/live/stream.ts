import { hasOddId, type TopicMessage, WaggleApi } from "@waggle-dev/client";
import { announcements, types } from "./protocol.ts";

/** Topics that a gateway shows on one stream. */
export const perStream = 8;

/** A connection without a sign of life for so long is dead: gateways give one each 10 s. */
const silence = 25_000;

/** A stream with other topics takes over from the one before. That one goes on for so long: what it has on its way is not lost. */
const overlap = 1000;

/** Something that tabs follow. */
export interface Topic {
  readonly name: string;
  /** Of a log: its last event that has come. */
  at: number;
  /** The stream that shows it; undefined: it waits for room. */
  stream: Stream | undefined;
}

/** Where streams come from, and what becomes of them. */
export interface Keeping {
  readonly origin: string;
  /** The present token. */
  token(): string;
  take(m: TopicMessage): void;
  /** A connection was made or is lost. */
  changed(): void;
  /** Announcements were lost. */
  missed(): void;
  /** A stream has ended, because coming back with the token would change nothing. */
  failed(s: Stream, error: unknown, token: string): void;
}

interface Reading {
  readonly topics: ReadonlySet<Topic>;
  readonly stop: AbortController;
  up: boolean;
}

/** One stream of the gateway. Its topics may change: then another connection takes over from the present one. */
export class Stream {
  private readonly topics = new Set<Topic>();
  private now: Reading | undefined;
  private before: Reading | undefined;
  private stale = false;

  constructor(private readonly of: Keeping) {}

  /** The topics that it is to show. */
  get all(): Iterable<Topic> {
    return this.topics;
  }

  /** Whether it has room for a topic: the events of at most one log with odd characters in its id can be told apart. */
  fits(t: Topic): boolean {
    return this.topics.size < perStream && !(odd(t) && [...this.topics].some(odd));
  }

  add(t: Topic): void {
    this.topics.add(t);
    t.stream = this;
    this.stale = true;
  }

  /** Takes a topic away. One that the server does not show any more needs no other connection. */
  remove(t: Topic, ended = false): void {
    this.topics.delete(t);
    t.stream = undefined;
    this.stale ||= !ended;
  }

  /** Whether a connection shows the topic. */
  shows(t: Topic): boolean {
    return [this.now, this.before].some((r) => r?.up && r.topics.has(t));
  }

  /** Has the next `renew` make a connection in any case. */
  spoil(): void {
    this.stale = true;
  }

  /** Makes a connection with the present topics, if they have changed. */
  renew() {
    if (!this.stale) return;
    this.stale = false;
    if (this.now?.up) {
      this.before?.stop.abort();
      this.before = this.now;
    } else this.now?.stop.abort();
    this.now = undefined;
    if (this.topics.size === 0) return this.close();
    this.now = { topics: new Set(this.topics), stop: new AbortController(), up: false };
    void this.read(this.now);
  }

  close(): void {
    this.now?.stop.abort();
    this.before?.stop.abort();
    this.now = this.before = undefined;
  }

  private async read(r: Reading): Promise<void> {
    const { of } = this;
    const { signal } = r.stop;
    let token = "";
    const own = () => {
      token = of.token();
      return token;
    };
    const api = new WaggleApi({ url: of.origin, token: own, backoff: { min: 200, max: 5000 } });
    const logs = Object.fromEntries([...r.topics].flatMap((t) => (t.name === announcements ? [] : [[t.name, t.at]])));
    try {
      const told = api.topics({
        logs,
        announcements: [...r.topics].some((t) => t.name === announcements),
        types,
        silence,
        signal,
        onConnection: (up) => this.connected(r, up),
        onGap: () => of.missed(),
      });
      for await (const m of told) if (!signal.aborted) of.take(m);
    } catch (error) {
      if (!signal.aborted) of.failed(this, error, token);
    }
  }

  private connected(r: Reading, up: boolean): void {
    r.up = up;
    if (r === this.before) {
      r.stop.abort(); // it has been lost: the other one is on its way
      this.before = undefined;
    } else if (up && this.before) {
      const old = this.before;
      setTimeout(() => {
        old.stop.abort();
        if (this.before === old) this.before = undefined;
      }, overlap);
    }
    this.of.changed();
  }
}

const odd = (t: Topic) => t.name !== announcements && hasOddId(t.name);
