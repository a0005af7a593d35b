import type { CanonicalEvent } from "@waggle-dev/client";

/** Events of a page. Pages lie on a grid: page n has the events n·1000+1 to n·1000+1000. */
export const pageSize = 1000;

/** So many characters of events are kept: what was used longest ago goes, and is read again when it is needed. */
const room = 48 << 20;

interface Page {
  events: (string | undefined)[];
  count: number;
  size: number;
  used: number;
}

/** The page that has an event. */
export function pageOf(seq: number): number {
  return Math.floor((seq - 1) / pageSize);
}

/** The events of a log that are here, as JSON. */
export class Store {
  private readonly pages = new Map<number, Page>();
  private clock = 0;
  private size = 0;

  constructor(private readonly most = room) {}

  /** Keeps an event. One that stands for several is not kept: the log has each of them. */
  put(e: CanonicalEvent): void {
    if ((e.from ?? e.sequence) !== e.sequence) return;
    const n = pageOf(e.sequence);
    const slot = (e.sequence - 1) % pageSize;
    let p = this.pages.get(n);
    if (!p) {
      p = { events: new Array(pageSize).fill(undefined), count: 0, size: 0, used: 0 };
      this.pages.set(n, p);
    }
    p.used = ++this.clock;
    if (p.events[slot] !== undefined) return;
    const text = JSON.stringify(e);
    p.events[slot] = text;
    p.count++;
    p.size += text.length;
    this.size += text.length;
    if (this.size > this.most) this.shrink(n);
  }

  /** Makes room, but not of the page with the number. */
  private shrink(but: number): void {
    const old = [...this.pages].filter(([n]) => n !== but).sort(([, a], [, b]) => a.used - b.used);
    for (const [n, p] of old) {
      if (this.size <= this.most * 0.9) return;
      this.size -= p.size;
      this.pages.delete(n);
    }
  }

  /** The JSON of an event, if it is here. */
  text(seq: number): string | undefined {
    const p = this.pages.get(pageOf(seq));
    if (p) p.used = ++this.clock;
    return p?.events[(seq - 1) % pageSize];
  }

  /** An event, if it is here. */
  get(seq: number): CanonicalEvent | undefined {
    const text = this.text(seq);
    return text === undefined ? undefined : (JSON.parse(text) as CanonicalEvent);
  }

  /** The first stretch from one event to another that is not here, within one page. */
  gap(from: number, to: number): { from: number; to: number } | undefined {
    for (let seq = from; seq <= to; ) {
      const n = pageOf(seq);
      const end = Math.min(to, (n + 1) * pageSize);
      const p = this.pages.get(n);
      if (!p) return { from: seq, to: end };
      if (p.count < pageSize) {
        while (seq <= end && p.events[(seq - 1) % pageSize] !== undefined) seq++;
        if (seq <= end) {
          let last = seq;
          while (last < end && p.events[last % pageSize] === undefined) last++;
          return { from: seq, to: last };
        }
      }
      seq = end + 1;
    }
    return undefined;
  }

  /** The pages of which something is here. */
  get numbers(): Iterable<number> {
    return this.pages.keys();
  }
}
