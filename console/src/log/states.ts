import type { CanonicalEvent, Snapshot } from "@waggle-dev/client";
import { type TeamView, TeamViewBuilder, ViewBuilder, type ViewItem } from "@waggle-dev/client/view";
import type { Arrow, Side } from "../fold/arrows.ts";
import { attemptsOf } from "../fold/attempts.ts";
import { type Bar, BarsBuilder } from "../fold/bars.ts";
import { TaskBuilder, type TaskState } from "../fold/task.ts";
import { type Definition, TeamFold } from "../fold/team.ts";
import { type Image, membersOf, type SaidImage, talkImage, viewOf } from "./image.ts";
import type { Asked, Kind, Shown, Summary } from "./protocol.ts";

/** What follows from a part of a log, from an event on that nothing before it matters for. */
export interface State {
  take(e: CanonicalEvent): void;
  /** A state that goes on from here by itself. */
  fork(): State;
  /** What is shown one below the other: of a session, of a team, or of the member of a path. */
  talk(of: string): Said;
  readonly bars: { bars: readonly Bar[]; until: number };
  readonly summary: Summary;
  /** Whether it has the beginning of a run. */
  knows(run: string): boolean;
  /** Things in it: what a copy of it takes. */
  readonly size: number;
  /** Of a team: its members, tasks and messages. */
  readonly team: TeamFold | undefined;
  /** All that it says, as the server's snapshots have it. */
  readonly image: Image;
}

/** What is shown one below the other. */
export interface Said {
  readonly items: readonly Shown[];
  key(item: Shown): string;
  readonly questions: Asked[];
  /** Runs that have not ended. */
  readonly active: number;
  /** Who sent a message to a member of a team. */
  sender?(id: string): Side | undefined;
  /** What took how long, if that is known. */
  readonly bars?: readonly Bar[];
}

/** The state of a log without events. A definition names members of a team whose first events have expired. */
export function emptyState(kind: Kind, team?: Definition): State {
  if (kind === "task") return new TaskLog();
  return kind === "session" ? new SessionState() : new TeamState(team);
}

/** The state that a snapshot of the server shows. */
export function stateOf(s: Snapshot): State {
  if (s.team) return TeamState.from(s);
  return s.task ? TaskLog.from(s) : SessionState.from(s);
}

const keyOf = (item: Shown): string => {
  const { kind, run, id } = item as ViewItem;
  return `${kind} ${run} ${id}`;
};

class SessionState implements State {
  readonly team = undefined;
  private view = new ViewBuilder();
  private falls = new BarsBuilder();
  private ends = new Map<string, string>();

  take(e: CanonicalEvent): void {
    this.view.take(e);
    this.falls.take(e);
    if (e.type === "input.requested" && e.data.timeout_seconds)
      this.ends.set(e.data.input_id, new Date(Date.parse(e.time) + e.data.timeout_seconds * 1000).toISOString());
    else if (e.type === "input.answered" || e.type === "input.expired") this.ends.delete(e.data.input_id);
  }

  static from(s: Snapshot): SessionState {
    const f = new SessionState();
    f.view = ViewBuilder.from(viewOf(s.conversation, s.seq));
    f.falls = BarsBuilder.from((s.bars ?? []) as Bar[], s.until);
    for (const q of s.conversation?.questions ?? []) if (q.ends) f.ends.set((q.data as { input_id: string }).input_id, q.ends);
    return f;
  }

  get image(): Image {
    return { conversation: talkImage(this.view.view, this.ends), ...this.falls.bars };
  }

  fork(): State {
    const f = new SessionState();
    f.view = this.view.fork();
    f.falls = this.falls.fork();
    f.ends = new Map(this.ends);
    return f;
  }

  talk(): Said {
    const { items, questions, active } = this.view.view;
    const asked = questions.map((question) => ({ question, ends: this.ends.get(question.id) }));
    return { items, key: keyOf, questions: asked, active: active.length, bars: this.falls.bars.bars };
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return this.falls.bars;
  }

  get summary(): Summary {
    const { items, questions, active } = this.view.view;
    const first = items.find((i) => i.kind === "user");
    let unknowns = 0;
    for (const i of items) if (i.kind === "tool" && i.status === "unknown") unknowns++;
    const state = questions.length > 0 ? "waiting" : active.length > 0 ? "running" : ended(items, this.falls.bars.bars);
    const attempts = attemptsOf(this.falls.bars.bars);
    return { name: first?.text ?? "", state, unknowns, status: "", ...(attempts ? { attempts } : {}) };
  }

  knows(run: string): boolean {
    return this.view.ofRun(run)[0]?.kind === "user";
  }

  get size(): number {
    return this.view.view.items.length + this.falls.bars.bars.length;
  }
}

/** How the last run ended, by what it has said. */
function ended(items: readonly ViewItem[], bars: readonly Bar[]): Summary["state"] {
  const { run } = items.at(-1) ?? {};
  let state: Summary["state"] = hasFailed(run, bars) ? "partly" : "idle";
  for (let n = items.length - 1; n >= 0; n--) {
    const i = items[n] as ViewItem;
    if (i.kind === "tool" && i.status === "unknown") return "unknown_outcome";
    if (i.kind === "end") state = i.code === "RUN_CANCELLED" ? "cancelled" : "failed";
    else if (i.kind === "user") return state === "idle" && n < items.length - 1 ? "completed" : state;
    else if (i.kind === "plan" && i.run === run && state === "idle") {
      if (i.status === "cancelled") state = "cancelled";
      else if (i.steps.some((s) => s.status === "failed" || s.status === "cancelled")) state = "partly";
    }
  }
  return state === "idle" && items.length > 0 ? "completed" : state;
}

/** Whether the last attempt at a step of a run has failed. */
function hasFailed(run: string | undefined, bars: readonly Bar[]): boolean {
  const seen = new Set<string>();
  for (let n = bars.length - 1; n >= 0; n--) {
    const b = bars[n] as Bar;
    if (b.run !== run) continue;
    if (b.kind === "run") return false;
    if (b.kind !== "step" || seen.has(b.id)) continue;
    if (b.state === "failed") return true;
    seen.add(b.id);
  }
  return false;
}

const noBars = { bars: [], until: 0 };

class TeamState implements State {
  private said = new TeamViewBuilder();
  team = new TeamFold();

  constructor(d?: Definition) {
    if (d) this.team.define(d);
  }

  take(e: CanonicalEvent): void {
    this.said.take(e);
    this.team.take(e);
  }

  static from(s: Snapshot): TeamState {
    const f = new TeamState();
    const { name = "", status = "", closed = false, tasks = [], messages = [], arrows = [], sides = [] } = s.team ?? {};
    const parts = { name, status, closed, tasks, arrows: arrows as Arrow[], sides: sides as Side[] };
    f.team = TeamFold.from({ ...parts, until: s.until, members: membersOf(s) });
    const said = messages.map(({ to, ...m }) => ({ ...m, to })) as TeamView["messages"];
    f.said = TeamViewBuilder.from({ status, members: [], messages: said, questions: [], seq: s.seq });
    return f;
  }

  get image(): Image {
    const { name, status, closed, members, tasks, arrows, sides, until } = this.team;
    const said: SaidImage = { messages: this.said.view.messages, arrows, sides, tasks };
    const talks = members.map((m) => {
      const view = this.team.talk(m.route);
      return { ...m, conversation: view && talkImage(view), suspended: this.team.waitsFor(m.route) };
    });
    return { team: { name, status, closed, members: talks, ...said }, until };
  }

  fork(): State {
    const f = new TeamState();
    f.said = this.said.fork();
    f.team = this.team.fork();
    return f;
  }

  talk(of: string): Said {
    const member = of === "" ? undefined : this.team.talk(of);
    const sender = (id: string) => this.team.sender(of, id);
    if (of !== "") return { items: member?.items ?? [], key: keyOf, questions: [], active: member?.active.length ?? 0, sender };
    return { items: this.said.view.messages, key: keyOfMessage, questions: [], active: 0 };
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return noBars;
  }

  get summary(): Summary {
    const { name, status, closed } = this.team;
    return { name, state: "idle", unknowns: 0, status: closed ? "closed" : status };
  }

  knows(): boolean {
    return true;
  }

  get size(): number {
    return this.said.view.messages.length + this.team.size;
  }
}

class TaskLog implements State {
  readonly team = undefined;
  private task = new TaskBuilder();

  take(e: CanonicalEvent): void {
    this.task.take(e);
  }

  static from(s: Snapshot): TaskLog {
    const f = new TaskLog();
    const { retry_of: retryOf = "", ...rest } = s.task ?? {};
    f.task = TaskBuilder.from({ ...(rest as TaskState), retryOf }, (s.bars ?? []) as Bar[], s.until);
    return f;
  }

  get image(): Image {
    const { retryOf, ...rest } = this.task.state;
    return { task: { ...rest, retry_of: retryOf }, ...this.task.bars };
  }

  fork(): State {
    const f = new TaskLog();
    f.task = this.task.fork();
    return f;
  }

  talk(): Said {
    return { items: [], key: (item) => item.id, questions: [], active: 0 };
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return this.task.bars;
  }

  get summary(): Summary {
    const { state } = this.task;
    const unknowns = state.calls.filter((c) => c.status === "unknown").length;
    return { name: state.type, state: "idle", unknowns, status: state.status, task: state };
  }

  knows(): boolean {
    return true;
  }

  get size(): number {
    return this.task.bars.bars.length + this.task.state.notes.length;
  }
}

const keyOfMessage = (item: Shown): string => {
  const m = item as { from: string; to: string | undefined };
  return `${m.from} ${m.to ?? ""} ${item.id}`;
};
