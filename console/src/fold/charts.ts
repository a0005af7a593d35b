import type { Rate, RateList } from "@waggle-dev/client";

/** What the installation did in one minute. */
export interface Minute {
  /** How many minutes ago it ended. */
  readonly ago: number;
  readonly runs: number;
  readonly failures: number;
  readonly tokens: number;
  /** In dollars. */
  readonly cost: number;
  /** In milliseconds; undefined: nothing was measured. */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

/** What can take long, in the order in which it is offered. */
export const timed = ["models", "tools", "commands"] as const;
export type Timed = (typeof timed)[number];

/** The server keeps its figures for so many minutes. */
const kept = 15;

/** The last minutes, the oldest first. */
export function minutesOf(all: RateList, of: Timed): readonly Minute[] {
  const rate = (name: string) => all.rates.find((r) => r.name === name);
  const step = Math.max(1, Math.round(60 / all.seconds));
  const n = kept;
  const sums = (r: Rate | undefined) => inMinutes(r?.points ?? [], all.seconds, step, n);
  const [runs, failures, tokens, micros] = ["runs", "failures", "tokens", "cost"].map((name) => sums(rate(name)));
  const took = rate(of)?.minutes ?? [];
  return Array.from({ length: n }, (_, i) => {
    const t = took[took.length - n + i];
    return {
      ago: n - 1 - i,
      runs: Math.round(runs?.[i] ?? 0),
      failures: Math.round(failures?.[i] ?? 0),
      tokens: Math.round(tokens?.[i] ?? 0),
      cost: (micros?.[i] ?? 0) / 1e6,
      p50: t?.p50_ms,
      p99: t?.p99_ms,
    };
  });
}

/** How much there was in each minute, from points a second that end now. */
function inMinutes(points: readonly number[], seconds: number, step: number, n: number): number[] {
  const sums = Array.from({ length: n }, () => 0);
  for (const [i, p] of points.entries()) {
    const at = n - 1 - Math.floor((points.length - 1 - i) / step);
    if (at >= 0) sums[at] = (sums[at] ?? 0) + p * seconds;
  }
  return sums;
}

/** The top of an axis: the next of 1, 2, 5 times a power of ten. */
export function topOf(most: number): number {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((m) => m * power).find((v) => v >= most * (1 - 1e-9)) ?? most;
}

/** The lines through the values that are known, as the data of a path: a gap where one is missing. */
export function lineThrough(values: readonly (number | undefined)[], at: (i: number, v: number) => readonly [number, number]): string {
  let out = "";
  let on = false;
  for (const [i, v] of values.entries()) {
    if (v !== undefined) {
      const [x, y] = at(i, v);
      out += `${on ? "L" : "M"}${+x.toFixed(2)} ${+y.toFixed(2)}`;
    }
    on = v !== undefined;
  }
  return out;
}

/** Something that is wrong, with what to do about it. */
export interface Trouble {
  readonly level: "warn" | "fail";
  readonly what: string;
  readonly is: string;
  readonly remedy: string;
}

/** What is wrong of what checks have found, the worst first. */
export function troubles(findings: readonly { level: string; what: string; is: string; do?: string | undefined }[]): readonly Trouble[] {
  const all = findings.flatMap((f) => {
    const level = f.level.toLowerCase();
    return level === "warn" || level === "fail" ? [{ level, what: f.what, is: f.is, remedy: f.do ?? "" } as Trouble] : [];
  });
  return all.toSorted((a, b) => Number(b.level === "fail") - Number(a.level === "fail"));
}
