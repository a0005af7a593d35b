import type { CanonicalEvent } from "@waggle-dev/client";

/**
 * Looks for an event of a session that nothing before it matters for: it begins a run, all earlier runs are over, and no later
 * event is about one of them. What a fold from there shows is the end of what a fold from the start shows. It is given the
 * events from the last one backwards.
 */
export class CutFinder {
  /** The earliest such event so far. */
  found: number | undefined;
  /** Runs of later events whose beginning has not come. */
  private readonly open = new Set<string>();
  /** Runs that have begun to work: runs that were there before them are over. */
  private readonly started = new Set<string>();

  take(e: CanonicalEvent): void {
    const run = (e.data as { run_id?: unknown }).run_id;
    if (typeof run !== "string" || run === "") return;
    if (e.type === "run.started") this.started.add(run);
    if (e.type !== "message.received") {
      this.open.add(run);
      return;
    }
    this.open.delete(run);
    if (this.open.size === 0 && this.started.has(run)) this.found = e.sequence;
  }
}
