/** Events of a log that came together: those from one sequence to another. */
export type Arrived = readonly [from: number, to: number];

/** How what came compares with what the log has. */
export interface Tally {
  /** Events that the log has. */
  events: number;
  /** Of these, how many never came. */
  lost: number;
  /** How often an event came that had come before. */
  doubled: number;
  /** How often an event came after a later one, other than those that had come before. */
  reordered: number;
}

/** Compares the events in the order in which they came with the sequences that the log has. */
export function tally(came: readonly Arrived[], log: readonly number[]): Tally {
  const seen = new Set<number>();
  let [doubled, reordered, last] = [0, 0, 0];
  for (const [from, to] of came) {
    for (let n = from; n <= to; n++) {
      if (seen.has(n)) doubled++;
      else if (n < last) reordered++;
      seen.add(n);
      last = Math.max(last, n);
    }
  }
  return { events: log.length, lost: log.filter((n) => !seen.has(n)).length, doubled, reordered };
}
