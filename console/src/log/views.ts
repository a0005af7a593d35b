import type { Arrow, Side } from "../fold/arrows.ts";
import type { Bar } from "../fold/bars.ts";
import type { TeamFold } from "../fold/team.ts";
import type { Extent, MemberRow, Part, Report, Shown, Summary } from "./protocol.ts";
import type { State } from "./states.ts";
import { Talk } from "./talk.ts";

/** A trace of fewer bars is little of a log that has more: the rest of the log is read, too. */
export const fewBars = 400;
/** So many messages of a team are sent to the page at most. */
const mostArrows = 120;

/** What a page shows that has not told yet how much of it is in view. */
const firstArrows = 40;

export type Patch = Omit<Extract<Report, { do: "patch" }>, "log">;

/** What of a state the page has: it gets what has changed, and only of the part that it shows. */
export class Views {
  private talk: Talk | undefined;
  private range: { from: number; to: number } | undefined;
  private bars: readonly Bar[] | undefined;
  private summary = "";
  private extent = "";
  private at = 0;
  private rows: readonly MemberRow[] | undefined;
  private tasks: readonly unknown[] | undefined;
  private arrows: { sides: readonly Side[]; length: number; from: number; arrows: readonly Arrow[] } | undefined;

  constructor(
    public part: Part,
    public member: string,
  ) {}

  /** The conversation that is shown, of a state. */
  conversation(s: State): { talk: Talk; items: readonly Shown[] } {
    const said = s.talk(this.member);
    if (this.talk?.of !== this.member) this.talk = new Talk(this.member, said.key);
    return { talk: this.talk, items: said.items };
  }

  /** Shows the end of the conversation again. */
  end(): void {
    this.talk?.window.end();
  }

  /** Shows other messages of a team. Without a range the newest are shown. */
  show(from: number, to: number): void {
    this.range = { from, to: Math.min(to, from + mostArrows) };
  }

  /** Adds to a patch what has changed. `older`: something stands before all that is in the state; `partial`: it is being read. */
  put(patch: Patch, s: State, older: boolean, partial: boolean): void {
    if (this.part === "talk" || this.part === "tree") {
      const { talk } = this.conversation(s);
      const changed = talk.patch(s.talk(this.member), older, partial);
      if (changed) patch.talk = changed;
    }
    if (this.part === "trace") this.putBars(patch, s);
    if (s.team && this.part !== "log") this.putTeam(patch, s.team);
  }

  /** Adds how a log stands, if that has changed. */
  putSummary(patch: Patch, summary: Summary): void {
    const text = JSON.stringify(summary);
    if (text !== this.summary) patch.summary = summary;
    this.summary = text;
  }

  /** Adds how much of the log is here, if that has changed. */
  putExtent(patch: Patch, extent: Extent): void {
    const text = JSON.stringify(extent);
    if (text !== this.extent) patch.extent = extent;
    this.extent = text;
  }

  /** Adds the event at which the view stands, if that is another one. `find` has what is known of it. */
  putPlace(patch: Patch, seq: number, find: () => { time: string; type: string } | undefined): void {
    if (seq === this.at) return;
    this.at = seq;
    const e = find();
    if (e) patch.at = { seq, time: e.time, type: e.type };
  }

  private putBars(patch: Patch, s: State): void {
    const { bars, until } = s.bars;
    const keep = shared(bars, this.bars ?? []);
    if (this.bars && keep === bars.length && keep === this.bars.length) return;
    patch.bars = { keep, bars: bars.slice(keep), until };
    this.bars = bars.slice();
  }

  private putTeam(patch: Patch, team: TeamFold): void {
    const rows = rowsOf(team, this.rows);
    if (!same(rows, this.rows)) patch.members = rows;
    this.rows = rows;
    if (this.part === "board") {
      const { tasks } = team;
      if (!same(tasks, this.tasks)) patch.tasks = tasks;
      this.tasks = tasks;
    }
    if (this.part === "messages") this.putArrows(patch, team);
  }

  private putArrows(patch: Patch, { arrows: all, sides }: TeamFold): void {
    const { length } = all;
    const from = Math.max(0, Math.min(this.range?.from ?? length, length - firstArrows));
    const arrows = all.slice(from, this.range && this.range.to > from ? this.range.to : undefined);
    const old = this.arrows;
    if (old?.length === length && old.from === from && old.sides === sides && same(arrows, old.arrows)) return;
    this.arrows = { sides, length, from, arrows };
    patch.arrows = this.arrows;
  }
}

/** How many things both begin with. */
function shared(a: readonly unknown[], b: readonly unknown[]): number {
  const most = Math.min(a.length, b.length);
  for (let n = 0; n < most; n++) if (a[n] !== b[n]) return n;
  return most;
}

function same(a: readonly unknown[], b: readonly unknown[] | undefined): boolean {
  return b !== undefined && a.length === b.length && a.every((x, i) => x === b[i]);
}

/** The members of a team with what they wait for. A row that says the same as before is the same row. */
export function rowsOf(team: TeamFold, before: readonly MemberRow[] = []): MemberRow[] {
  const { waits } = team;
  return team.members.map((m, i) => {
    const row: MemberRow = { ...m, waits: waits.get(m.route) ?? [] };
    const old = before[i];
    return old && JSON.stringify(old) === JSON.stringify(row) ? old : row;
  });
}
