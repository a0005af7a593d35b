import type { MemberRow } from "../log/protocol.ts";
import { last } from "./arrows.ts";
import type { Wait } from "./team.ts";

/** The name of people among those that a team waits for: no member has it. */
export const people = "\0people";

/** One that waits, or is waited for. */
export interface Waiter {
  /** The path of a member, or `people`. */
  id: string;
  name: string;
  /** undefined: people, or a member that the team does not have. */
  member: MemberRow | undefined;
}

/** One that waits for another one, and for what of it. */
export interface WaitArrow {
  from: string;
  to: string;
  waits: readonly Wait[];
}

/** Who in a team waits for whom. */
export interface WaitGraph {
  nodes: readonly Waiter[];
  arrows: readonly WaitArrow[];
}

/** Makes a graph of what members wait for, people first: they can act. One that waits for its own work waits for nobody. */
export function waitGraph(rows: readonly MemberRow[]): WaitGraph {
  const arrows = new Map<string, { from: string; to: string; waits: Wait[] }>();
  for (const { route: from, waits } of rows)
    for (const w of waits) {
      const to = w.for === "people" ? people : w.route;
      if (to === from) continue;
      const key = JSON.stringify([from, to]);
      const arrow = arrows.get(key) ?? { from, to, waits: [] };
      arrow.waits.push(w);
      arrows.set(key, arrow);
    }
  const all = [...arrows.values()].sort((a, b) => Number(b.to === people) - Number(a.to === people));
  const ends = new Set(all.flatMap((a) => [a.from, a.to]));
  const members = rows.filter((m) => ends.delete(m.route)).map((member) => ({ id: member.route, name: member.name, member }));
  const others = [...ends].map((id) => ({ id, name: id === people ? "" : last(id), member: undefined }));
  return { nodes: [...members, ...others], arrows: all };
}
