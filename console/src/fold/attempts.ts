import type { Bar } from "./bars.ts";

/** How often the job of a run was attempted that was attempted most often. */
export interface Attempts {
  /** At least 2. */
  n: number;
  /** The event that began the newest attempt at it. */
  seq: number;
}

/**
 * The attempts of the newest run whose beginning is known; undefined: each of its jobs had one. A job that resumes after people have
 * answered is no second attempt at it.
 */
export function attemptsOf(bars: readonly Bar[], run = bars.findLast((b) => b.kind === "run")?.run): Attempts | undefined {
  const jobs = new Map<string, { n: number; last: Bar }>();
  let most: Attempts | undefined;
  for (const b of bars) {
    if (b.kind !== "job" || b.run !== run) continue;
    const before = jobs.get(b.id);
    const again = before !== undefined && before.last.state !== "completed";
    const n = (before?.n ?? 1) + (again ? 1 : 0);
    jobs.set(b.id, { n, last: b });
    if (again && n >= (most?.n ?? 2)) most = { n, seq: b.seq };
  }
  return most;
}
