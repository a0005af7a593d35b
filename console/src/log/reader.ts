import { type CanonicalEvent, type LogHead, type LogPage, type Snapshot, type WaggleApi, WaggleError } from "@waggle-dev/client";
import { patient } from "./patient.ts";
import type { Kind } from "./protocol.ts";
import { pageOf, pageSize, type Store } from "./store.ts";

/** Requests for pages that are made at once. */
const atOnce = 2;

/** Lets few in at once: first what somebody waits for, then what is read in the background. */
class Turns {
  private inside = 0;
  private readonly urgent: (() => void)[] = [];
  private readonly others: (() => void)[] = [];

  async take<T>(urgent: boolean, work: () => Promise<T>): Promise<T> {
    if (this.inside >= atOnce) await new Promise<void>((go) => (urgent ? this.urgent : this.others).push(go));
    else this.inside++;
    try {
      return await work();
    } finally {
      const next = this.urgent.shift() ?? this.others.shift();
      if (next) next();
      else this.inside--;
    }
  }
}

const turns = new Turns();

/** Reads pages of a log into a store. */
export class Reader {
  /** The first event that the server still has. */
  first = 1;
  private readonly pending = new Map<number, Promise<void>>();
  private readonly path: string;

  constructor(
    private readonly client: WaggleApi,
    kind: Kind,
    id: string,
    private readonly store: Store,
    private readonly signal: AbortSignal,
    /** Sees each event that has been read. */
    private readonly note: (e: CanonicalEvent) => void,
  ) {
    this.path = `/api/v1/logs/${kind}/${encodeURIComponent(id)}`;
  }

  /** The extent of the log. */
  async head(): Promise<LogHead> {
    const head = await patient(() => this.client.call<LogHead>("GET", `${this.path}/head`, undefined, { signal: this.signal }), {
      signal: this.signal,
    });
    this.first = head.first;
    return head;
  }

  /** What the log said after an event. Undefined: the server has no snapshot of it, and the events say it. */
  async snapshot(at: number): Promise<Snapshot | undefined> {
    const { signal } = this;
    try {
      return await patient(() => this.client.call<Snapshot>("GET", `${this.path}/snapshot?at=${at}`, undefined, { signal }), { signal });
    } catch (error) {
      if (error instanceof WaggleError && error.status >= 400 && error.status < 500) return undefined;
      throw error;
    }
  }

  /** One page. `query` says which. */
  page(query: string, urgent: boolean): Promise<LogPage & { events: CanonicalEvent[] }> {
    return turns.take(urgent, () =>
      patient(
        () =>
          this.client.call<LogPage & { events: CanonicalEvent[] }>("GET", `${this.path}/events?${query}`, undefined, {
            signal: this.signal,
          }),
        { signal: this.signal },
      ),
    );
  }

  /** Has the newest events up to one of them in the store, as far as one page has them. */
  async newest(last: number, limit: number): Promise<void> {
    this.keep(await this.page(`before=${last + 1}&limit=${limit}`, true));
  }

  /** Has all events from one to another in the store, as far as the server still has them. */
  async ensure(from: number, to: number, urgent = true): Promise<void> {
    const pages: Promise<void>[] = [];
    for (let n = pageOf(Math.max(from, this.first)); n <= pageOf(to); n++)
      pages.push(this.fill(n, Math.max(from, n * pageSize + 1), Math.min(to, (n + 1) * pageSize), urgent));
    await Promise.all(pages);
  }

  private async fill(n: number, from: number, to: number, urgent: boolean): Promise<void> {
    for (;;) {
      this.signal.throwIfAborted();
      const gap = this.store.gap(Math.max(from, this.first), to);
      if (!gap) return;
      const pending = this.pending.get(n);
      if (pending) {
        await pending;
        continue;
      }
      const work = this.page(`after=${gap.from - 1}&limit=${gap.to - gap.from + 1}`, urgent).then((p) => {
        this.keep(p);
        if (this.store.gap(Math.max(gap.from, this.first), gap.from)) throw new Error(`The server has left event ${gap.from} out.`);
      });
      const done = work.catch(() => {});
      this.pending.set(n, done);
      await work.finally(() => this.pending.delete(n));
    }
  }

  private keep(p: LogPage & { events: CanonicalEvent[] }): void {
    if (p.expired) this.first = Math.max(this.first, p.expired + 1);
    for (const e of p.events) {
      this.store.put(e);
      this.note(e);
    }
  }
}
