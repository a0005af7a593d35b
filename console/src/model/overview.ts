import { computed, type ReadonlySignal } from "@preact/signals";
import type { SessionSummary } from "@waggle-dev/client";
import { countOf, sessionCounts } from "./counts.ts";
import { sessionList } from "./lists.ts";

/** So many sessions are shown. */
const shown = 5;

/** What the start page tells of the installation, live. */
export class Overview {
  private readonly recent = sessionList({ q: "", state: "" });
  private readonly all = sessionCounts();
  /** Since the last midnight of the reader. */
  private readonly today = sessionCounts("since:today");

  /** The sessions that changed last; undefined until they are known. */
  readonly sessions: ReadonlySignal<readonly SessionSummary[] | undefined> = computed(() => this.recent.rows.value?.slice(0, shown));
  /** Numbers as texts; undefined until they are known. */
  readonly running: ReadonlySignal<string | undefined> = computed(() => known(this.all.answer.value, "running"));
  readonly failed: ReadonlySignal<string | undefined> = computed(() => known(this.today.answer.value, "failed"));

  close(): void {
    for (const one of [this.recent, this.all, this.today]) one.close();
  }
}

const known = (c: Parameters<typeof countOf>[0], state: string) => c && (countOf(c, state) || "0");
