import type { Bar } from "./bars.ts";

/** A bar at its place in the tree: what was done for what. */
export interface Branch {
  bar: Bar;
  /** How deep it lies: 0 at the top. */
  depth: number;
  /** How many bars lie below it, at any depth. */
  below: number;
}

/**
 * The bars as a tree, each before what was done for it: a run has its queue, steps, jobs and questions; a step its jobs; a job its calls and
 * pauses. A task has its queue and its attempts, an attempt what its agent called, asked and gave to others. What has no parent among
 * the bars lies at the top.
 */
export function trace(bars: readonly Bar[]): readonly Branch[] {
  const children: number[][] = bars.map(() => []);
  const top: number[] = [];
  const parents = new Parents();
  // The queue of a run begins before the run, and still belongs to it.
  const runs = new Map(bars.flatMap((b, i) => (b.kind === "run" ? [[b.run, i] as const] : [])));
  const task = bars.findIndex((b) => b.id === "task" && b.kind === "step");
  for (const [i, bar] of bars.entries()) {
    const parent = (bar.kind === "queue" ? runs.get(bar.run) : parents.of(bar)) ?? (task < 0 ? undefined : task);
    (parent === undefined || parent === i ? top : (children[parent] as number[])).push(i);
    parents.add(bar, i);
  }
  top.sort((a, b) => (bars[a] as Bar).from - (bars[b] as Bar).from || a - b);
  const out: Branch[] = [];
  const put = (i: number, depth: number): number => {
    const branch: Branch = { bar: bars[i] as Bar, depth, below: 0 };
    out.push(branch);
    for (const child of children[i] as number[]) branch.below += 1 + put(child, depth + 1);
    return branch.below;
  };
  for (const i of top) put(i, 0);
  return out;
}

/** The places of bars to which others belong, as of the bars so far. */
class Parents {
  private readonly runs = new Map<string, number>();
  private readonly steps = new Map<string, number>();
  private readonly jobs = new Map<string, number>();

  of(b: Bar): number | undefined {
    const job = b.job ?? "";
    switch (b.kind) {
      case "run":
        return undefined;
      case "step":
        return this.runs.get(b.run) ?? this.jobs.get(key(b.run, "")); // the latter: a task that an agent gave to another one
      case "job":
        return this.steps.get(job) ?? this.runs.get(b.run);
      default:
        return this.jobs.get(key(b.run, job)) ?? this.steps.get(job) ?? this.runs.get(b.run);
    }
  }

  add(b: Bar, place: number): void {
    if (b.kind === "run") this.runs.set(b.run, place);
    else if (b.kind === "step" && b.job) this.steps.set(b.job, place);
    else if (b.kind === "job") this.jobs.set(key(b.run, b.job ?? ""), place);
  }
}

const key = (run: string, job: string) => `${run} ${job}`;

/** The branches that are shown while those below some bars are hidden. */
export function unfolded(all: readonly Branch[], shut: ReadonlySet<string>): readonly Branch[] {
  if (shut.size === 0) return all;
  const out: Branch[] = [];
  for (let i = 0; i < all.length; i++) {
    const branch = all[i] as Branch;
    out.push(branch);
    if (shut.has(nameOf(branch.bar))) i += branch.below;
  }
  return out;
}

/** Names a bar: attempts at a job have the same id. */
export const nameOf = (b: Bar): string => `${b.id} ${b.seq}`;

/** A part of the axis, in percent of the whole. */
export interface Window {
  from: number;
  to: number;
}

/** The whole axis. */
export const whole: Window = { from: 0, to: 100 };

/** The smallest part of the axis, in percent: beyond it nothing can be told apart. */
const smallest = 0.05;

/** The window around a place, in percent of the window, by a factor below 1 nearer and above 1 farther. It stays on the axis. */
export function zoomed(w: Window, around: number, factor: number): Window {
  const size = Math.min(100, Math.max(smallest, (w.to - w.from) * factor));
  const fixed = w.from + ((w.to - w.from) * around) / 100;
  const from = Math.min(100 - size, Math.max(0, fixed - (size * around) / 100));
  return { from, to: from + size };
}

/** The window moved by a part of its size. It stays on the axis. */
export function moved(w: Window, by: number): Window {
  const size = w.to - w.from;
  const from = Math.min(100 - size, Math.max(0, w.from + by * size));
  return { from, to: from + size };
}

/** Where a place of the axis lies in the window, in percent of it. */
export const within = (w: Window, place: number): number => ((place - w.from) / (w.to - w.from)) * 100;

/** A line of the scale: its place in the window in percent, and how much time has passed there, in milliseconds. */
export interface Tick {
  at: number;
  ms: number;
}

/** Round times for the scale of an axis that begins at a time; where time is folded there are none. */
export function ticks(place: (time: number) => number, from: number, to: number, w: Window, most: number): readonly Tick[] {
  const total = Math.max(1, to - from) * ((w.to - w.from) / 100);
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
  ];
  const step = steps.find((s) => total / s <= most) ?? Math.ceil(total / most / 3_600_000) * 3_600_000;
  const out: Tick[] = [];
  let last = Number.NEGATIVE_INFINITY;
  const count = Math.min(5000, Math.floor((to - from) / step));
  for (let i = 0; i <= count; i++) {
    const at = within(w, place(from + i * step));
    if (at < 0 || at > 100 || at - last < 100 / (2 * most)) continue;
    out.push({ at, ms: i * step });
    last = at;
  }
  return out;
}
