import type { Shown } from "./protocol.ts";

/** So many turns are in the window, or fewer if they would take more elements than a page should have. */
const turns = 40;
const elements = 700;
/** But so many things are in it whatever they take. */
const least = 8;
/** A window that grows at its end is cut when it has so much more. */
const slack = 1.25;

const weights = new WeakMap<object, number>();

/** About how many elements a page takes to show something. */
export function weight(item: Shown): number {
  let w = weights.get(item);
  if (w === undefined) {
    w = estimate(item);
    weights.set(item, w);
  }
  return w;
}

function estimate(item: Shown): number {
  if (!("kind" in item)) return 6 + ofText(item.text);
  switch (item.kind) {
    case "user":
      return 5;
    case "answer":
      return 5 + ofText(item.text) + (item.reasoning ? 4 : 0);
    case "tool":
      return 16;
    case "plan":
      return 14 + item.steps.reduce((sum, s) => sum + 6 + s.dependencies.length, 0);
    case "decision":
    case "retry":
    case "notice":
    case "end":
      return 10;
  }
}

/** A line of code takes so many elements: its pieces have colours. */
const ofCode = 4;

/** The elements of a text in Markdown: of its lines and of its marks. */
function ofText(text: string): number {
  let n = 1;
  let line = 1;
  const most = Math.min(text.length, 64 << 10);
  for (let i = 0; i < most; i++) {
    const c = text.charCodeAt(i);
    if (c === 10 || c === 124) n += line;
    else if (c === 96 && text.startsWith("```", i)) {
      line = line === 1 ? ofCode : 1;
      i += 2;
    } else if (c === 96 || c === 42 || c === 91) n += 0.5;
  }
  return Math.ceil(n);
}

/** Whether a turn begins with an item. */
function begins(item: Shown): boolean {
  return !("kind" in item) || item.kind === "user";
}

/** The part of what a log shows that is in the page. */
export class Window {
  /** The key of the last item that is in it; undefined: it is at the end. */
  private last: string | undefined;
  private firstKey: string | undefined;
  private range = { from: 0, to: 0 };

  constructor(private readonly key: (item: Shown) => string) {}

  /** Puts the window over the items. */
  over(items: readonly Shown[]): { from: number; to: number } {
    const at = this.last === undefined ? -1 : items.findLastIndex((i) => this.key(i) === this.last);
    if (at < 0) this.last = undefined;
    const to = at < 0 ? items.length : at + 1;
    const old = this.firstKey === undefined ? -1 : items.findLastIndex((i, n) => n < to && this.key(i) === this.firstKey);
    const from = old >= 0 && fits(items, old, to) ? this.fill(items, old, to) : start(items, to, turns, elements);
    this.range = { from, to };
    const first = items[from];
    this.firstKey = first && this.key(first);
    return this.range;
  }

  /** A window with little in it takes in what stands before. */
  private fill(items: readonly Shown[], from: number, to: number): number {
    return Math.min(from, start(items, to, turns / slack, elements / slack));
  }

  /** Moves it back: half of what it shows stays, to the end of a turn if one ends there. */
  earlier(items: readonly Shown[]): void {
    const { from, to } = this.range;
    const middle = Math.min(to, from + Math.max(1, Math.ceil((to - from) / 2)));
    const turn = items.findIndex((item, i) => i >= middle && i < to && begins(item));
    const last = items[(turn < 0 ? middle : turn) - 1];
    this.last = last && this.key(last);
    this.firstKey = undefined;
  }

  /** Moves it forward: half of what it shows stays, from the beginning of a turn if one begins there. */
  later(items: readonly Shown[]): void {
    const { from, to } = this.range;
    const middle = Math.max(from, Math.min(to - 1, from + Math.floor((to - from) / 2)));
    const turn = items.findLastIndex((item, i) => i > from && i <= middle && begins(item));
    const begin = turn < 0 ? middle : turn;
    let end = begin;
    for (let n = 0, w = 0; end < items.length; end++) {
      const item = items[end] as Shown;
      if (begins(item)) n++;
      w += weight(item);
      if ((n > turns || w > elements) && end > to && end - begin >= least) break;
    }
    const last = items[end - 1];
    this.last = end < items.length && last ? this.key(last) : undefined;
    const first = items[begin];
    this.firstKey = first && this.key(first);
  }

  /** Moves it to the end. */
  end(): void {
    if (this.last !== undefined) this.firstKey = undefined;
    this.last = undefined;
  }
}

function fits(items: readonly Shown[], from: number, to: number): boolean {
  let n = 0;
  let w = 0;
  for (let i = from; i < to; i++) {
    const item = items[i] as Shown;
    if (begins(item)) n++;
    w += weight(item);
  }
  return n <= turns * slack && (w <= elements * slack || to - from <= least);
}

/** Where a window begins that ends at an item: with a whole turn, if one fits. */
function start(items: readonly Shown[], to: number, most: number, room: number): number {
  let from = to;
  let whole = to;
  for (let n = 0, w = 0; from > 0; ) {
    const item = items[from - 1] as Shown;
    w += weight(item);
    if (w > room && to - from >= least) return whole < to ? whole : from;
    from--;
    if (!begins(item)) continue;
    whole = from;
    if (++n >= most) return whole;
  }
  return from;
}
