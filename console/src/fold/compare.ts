import type { Deed } from "./run.ts";

/** What two runs have in the same place. One of them may have nothing there. */
export interface Pair {
  a: Deed | undefined;
  b: Deed | undefined;
  /** Whether they differ in more than the time that they took. */
  differs: boolean;
}

/** A step of both runs, or of one, with what belongs to it; the first group has what belongs to no step. */
interface Group<T> {
  key: string;
  a: T | undefined;
  b: T | undefined;
  /** Where it stands: between its places on both sides. */
  place: number;
}

/**
 * Puts two runs beside each other: by the titles of steps, and within a step by what was done and how often before. Everything
 * that either run did is in one pair. The same runs the other way around give the same pairs the other way around.
 */
export function align(a: readonly Deed[], b: readonly Deed[]): Pair[] {
  return match(split(a), split(b)).flatMap((group) =>
    match(numbered(group.a ?? []), numbered(group.b ?? [])).map((p) => ({ a: p.a, b: p.b, differs: differ(p.a, p.b) })),
  );
}

/** The deeds of each step, and the answer. A title that comes again is another step. */
function split(deeds: readonly Deed[]): Map<string, Deed[]> {
  const groups = new Map<string, Deed[]>();
  const times = new Map<string, number>();
  for (const d of deeds) {
    if (d.kind === "step") times.set(d.step, (times.get(d.step) ?? 0) + 1);
    const key = d.kind === "answer" ? "answer" : JSON.stringify([d.step, times.get(d.step) ?? 0]);
    const group = groups.get(key);
    if (group) group.push(d);
    else groups.set(key, [d]);
  }
  return groups;
}

/** The deeds by what they are and how many of the same came before. */
function numbered(deeds: readonly Deed[]): Map<string, Deed> {
  const times = new Map<string, number>();
  return new Map(
    deeds.map((d) => {
      // Models are compared by the order of their answers: two runs may have had different ones.
      const what = d.kind === "model" ? d.kind : `${d.kind} ${d.name}`;
      const n = times.get(what) ?? 0;
      times.set(what, n + 1);
      return [JSON.stringify([what, n]), d];
    }),
  );
}

function match<T>(a: ReadonlyMap<string, T>, b: ReadonlyMap<string, T>): Group<T>[] {
  const places = [a, b].map((side) => new Map([...side.keys()].map((key, i) => [key, i])));
  return [...new Set([...a.keys(), ...b.keys()])]
    .map((key) => {
      const at = places.map((p) => p.get(key)).filter((n) => n !== undefined);
      return { key, a: a.get(key), b: b.get(key), place: at.reduce((sum, n) => sum + n, 0) / at.length };
    })
    .sort((x, y) => x.place - y.place || (x.key < y.key ? -1 : 1));
}

function differ(a: Deed | undefined, b: Deed | undefined): boolean {
  if (!a || !b) return true;
  return a.state !== b.state || a.name !== b.name || difference(a.value, b.value).length > 0;
}

/** A place of two JSON values at which they are not the same. */
export interface Difference {
  /** The keys on the way to it. */
  path: readonly string[];
  /** What is there on each side; undefined: nothing. */
  a: unknown;
  b: unknown;
}

/** So deep two values are compared key by key; below that as wholes. */
const deepest = 40;

/** Where two JSON values differ, by key, in the order of their keys. */
export function difference(a: unknown, b: unknown, path: readonly string[] = []): Difference[] {
  if (Object.is(a, b)) return [];
  if (path.length < deepest && nests(a) && nests(b) && Array.isArray(a) === Array.isArray(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort((x, y) => order(a, b, x) - order(a, b, y) || (x < y ? -1 : 1));
    return keys.flatMap((k) => difference(own(a, k), own(b, k), [...path, k]));
  }
  if (nests(a) && nests(b) && JSON.stringify(a) === JSON.stringify(b)) return [];
  return [{ path, a, b }];
}

type Nest = Record<string, unknown>;

function nests(value: unknown): value is Nest {
  return typeof value === "object" && value !== null;
}

function own(value: Nest, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Where a key stands in two objects: the average of its places. */
function order(a: Nest, b: Nest, key: string): number {
  const at = [a, b].map((x) => Object.keys(x).indexOf(key)).filter((n) => n >= 0);
  return at.reduce((sum, n) => sum + n, 0) / at.length;
}
