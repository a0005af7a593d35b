import type { ViewItem, ViewStep } from "@waggle-dev/client/view";

/** What stands one below the other in a conversation: an item, or the steps of a run, each with what was said and called in it. */
export type Block = { kind: "item"; key: string } | { kind: "steps"; key: string; run: string; steps: readonly StepBlock[] };

/** A step with the keys of its items. `place` is its run and step. */
export interface StepBlock {
  id: string;
  place: string;
  keys: readonly string[];
}

/** What the log says of an item besides its text. */
export interface Note {
  /** When it began and ended: milliseconds since 1970. */
  from?: number;
  to?: number;
  /** The step in which it was decided. */
  step?: string;
  /** Requests to a model that failed before it answered, and the problem of the last one. */
  failed?: number;
  code?: string;
}

/** A step of a run that has begun, or that will not. */
export interface StepNote {
  title: string;
  status: ViewStep["status"];
  /** Of one that has failed or was skipped: the text, or the code, of the reason. */
  text: string;
  code?: string;
  /** When its first attempt began: milliseconds since 1970; undefined: it never did. */
  began?: number;
  /** When its last attempt began and ended. */
  from?: number;
  to?: number;
  /** How often it was begun. */
  tries: number;
}

/** What stands beside a conversation: its steps, by run and step, in the order of their plans; and notes of items, by their keys. */
export interface Margin {
  steps: Readonly<Record<string, StepNote>>;
  notes: Readonly<Record<string, Note>>;
}

/**
 * Puts the items of each step together, so that steps at the same time do not mix. The steps of a run stand below its plan, in the order
 * in which they began; those that never did come last. Of a run whose plan is not here only steps with items are shown.
 */
export function blocks(keys: readonly string[], item: (key: string) => ViewItem, { steps, notes }: Margin): Block[] {
  const all = keys.map((key) => ({ key, item: item(key) }));
  const stepOf = (e: (typeof all)[number]) => ("step" in e.item ? e.item.step : undefined) ?? notes[e.key]?.step;
  const places = new Map<string, number>();
  const groups = new Map<string, Map<string, string[]>>();
  for (const [i, e] of all.entries()) {
    const { run } = e.item;
    const step = stepOf(e);
    if (e.item.kind === "plan" || (e.item.kind === "decision" && e.item.scope === "plan" && places.get(run) === i - 1)) places.set(run, i);
    if (step === undefined) continue;
    const group = groups.get(run) ?? new Map<string, string[]>();
    groups.set(run, group);
    group.set(step, [...(group.get(step) ?? []), e.key]);
  }
  for (const place of Object.keys(steps)) {
    const cut = place.lastIndexOf("/");
    const [run, step] = [place.slice(0, cut), place.slice(cut + 1)];
    if (!places.has(run)) continue;
    const group = groups.get(run) ?? new Map<string, string[]>();
    groups.set(run, group);
    if (!group.has(step)) group.set(step, []);
  }
  const out: Block[] = [];
  const put = (run: string) => {
    const group = groups.get(run);
    if (group) out.push({ kind: "steps", key: `steps ${run}`, run, steps: ordered(run, group, steps) });
    groups.delete(run);
  };
  for (const [i, e] of all.entries()) {
    const { run } = e.item;
    if (stepOf(e) === undefined) out.push({ kind: "item", key: e.key });
    else if (!places.has(run)) put(run);
    if (places.get(run) === i) put(run);
  }
  return out;
}

function ordered(run: string, group: ReadonlyMap<string, readonly string[]>, notes: Margin["steps"]): StepBlock[] {
  const planned = Object.keys(notes);
  const rank = new Map(planned.map((place, i) => [place, i]));
  return [...group]
    .map(([id, keys]) => ({ id, place: `${run}/${id}`, keys }))
    .sort((a, b) => {
      const [x, y] = [notes[a.place]?.began ?? Number.POSITIVE_INFINITY, notes[b.place]?.began ?? Number.POSITIVE_INFINITY];
      return (x === y ? 0 : x - y) || (rank.get(a.place) ?? 0) - (rank.get(b.place) ?? 0);
    });
}
