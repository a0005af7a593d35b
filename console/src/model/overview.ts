import { computed, type ReadonlySignal } from "@preact/signals";
import type { SessionSummary } from "@waggle-dev/client";
import { now } from "../app.ts";
import { type List, sessionList } from "./lists.ts";

/** A number of a list, and whether the list has more than the server has looked through. */
export interface Count {
  n: number;
  more: boolean;
}

/** What the start page tells of the installation, live. */
export class Overview {
  private readonly recent = sessionList({ q: "", state: "" });
  private readonly active = sessionList({ q: "", state: "running" });
  private readonly broken = sessionList({ q: "", state: "failed" });

  /** The sessions that changed last; undefined until they are known. */
  readonly sessions: ReadonlySignal<readonly SessionSummary[] | undefined> = computed(() => this.recent.rows.value?.slice(0, shown));
  readonly running: ReadonlySignal<Count | undefined> = computed(() => count(this.active, (s) => s.state === "running"));
  /** Sessions that failed since the last midnight of the reader. */
  readonly failed: ReadonlySignal<Count | undefined> = computed(() => {
    const midnight = new Date(now.value).setHours(0, 0, 0, 0);
    return count(this.broken, (s) => s.state === "failed" && Date.parse(s.updated_at) >= midnight);
  });

  close(): void {
    for (const list of [this.recent, this.active, this.broken]) list.close();
  }
}

/** So many sessions are shown. */
const shown = 5;

function count(list: List<SessionSummary>, fits: (s: SessionSummary) => boolean): Count | undefined {
  const rows = list.rows.value;
  return rows && { n: rows.filter(fits).length, more: list.more.value !== undefined && rows.every(fits) };
}
