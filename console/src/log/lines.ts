import type { CanonicalEvent } from "@waggle-dev/client";
import { fits, line } from "../fold/lines.ts";
import type { Mark, Row } from "./protocol.ts";
import { pageOf, pageSize, type Store } from "./store.ts";

/** The row of an event. */
export function rowOf(e: CanonicalEvent): Row {
  return { seq: e.sequence, time: e.time, type: e.type, line: line(e) };
}

const kinds: Partial<Record<CanonicalEvent["type"], string>> = {
  "input.requested": "people",
  "tool.unknown": "unknown",
  "tool.failed": "failed",
  "run.failed": "failed",
  "step.failed": "failed",
  "message.received": "user",
  "task.asked": "people",
  "task.released": "takeover",
};

/** The kind of the mark of an event; undefined: it does not stand out. */
function markOf(e: CanonicalEvent): string | undefined {
  switch (e.type) {
    case "job.started":
      return e.data.resumed ? "takeover" : undefined;
    case "call.finished":
      return e.data.status === "success" ? undefined : e.data.status === "unknown" ? "unknown" : "failed";
    case "task.finished":
      return e.data.status === "failed" ? "failed" : undefined;
  }
  return kinds[e.type];
}

/** So many marks are shown, the newest. */
const most = 400;

/** What stands out in a log: questions, failures, unknown outcomes, takeovers by another worker or agent, and messages. */
export class Marks {
  private readonly all = new Map<number, string>();
  changed = false;

  note(e: CanonicalEvent): void {
    const kind = markOf(e);
    if (!kind || this.all.has(e.sequence)) return;
    this.all.set(e.sequence, kind);
    this.changed = true;
  }

  /** The newest marks. Messages are left out first: a long log has thousands. */
  take(): Mark[] {
    this.changed = false;
    const marks = [...this.all].map(([seq, kind]) => ({ seq, kind })).sort((a, b) => b.seq - a.seq);
    const rare = marks.filter((m) => m.kind !== "user").slice(0, most);
    return [...rare, ...marks.filter((m) => m.kind === "user").slice(0, most - rare.length)];
  }

  /** How many calls before an event have an outcome that is unknown. */
  unknowns(before: number): number {
    let n = 0;
    for (const [seq, kind] of this.all) if (kind === "unknown" && seq < before) n++;
    return n;
  }
}

/** The events that fit a filter, page by page. */
export class Filter {
  private readonly hits = new Map<number, number[]>();
  private readonly stale = new Set<number>();

  constructor(
    readonly text: string,
    private readonly store: Store,
    /** The pages that have events. */
    pages: Iterable<number>,
  ) {
    for (const n of pages) this.stale.add(n);
  }

  /** An event has come. */
  note(seq: number): void {
    this.stale.add(pageOf(seq));
  }

  /** Looks through one page, and reports whether more are left. The newest come first. */
  step(): boolean {
    const n = Math.max(...this.stale);
    if (this.stale.size === 0) return false;
    this.stale.delete(n);
    const hits = new Set(this.hits.get(n));
    for (let seq = n * pageSize + 1; seq <= (n + 1) * pageSize; seq++) {
      const e = this.store.get(seq);
      if (e && fits(e, this.text)) hits.add(seq);
    }
    this.hits.set(
      n,
      [...hits].sort((a, b) => a - b),
    );
    return this.stale.size > 0;
  }

  /** All that have been found, in order. */
  get found(): Uint32Array<ArrayBuffer> {
    return Uint32Array.from([...this.hits].sort(([a], [b]) => a - b).flatMap(([, hits]) => hits));
  }
}
