import type { CanonicalEvent } from "@waggle-dev/client";
import { TeamViewBuilder, ViewBuilder, type ViewItem } from "@waggle-dev/client/view";
import { TaskBuilder } from "../fold/task.ts";
import { type Bar, WaterfallBuilder } from "../fold/waterfall.ts";
import type { Asked, Kind, Shown, Summary } from "./protocol.ts";

/** What follows from a part of a log, from an event on that nothing before it matters for. */
export interface State {
  take(e: CanonicalEvent): void;
  /** A state that goes on from here by itself. */
  fork(): State;
  /** What is shown one below the other. */
  readonly items: readonly Shown[];
  key(item: Shown): string;
  readonly questions: Asked[];
  readonly active: number;
  readonly bars: { bars: readonly Bar[]; until: number };
  readonly summary: Summary;
  /** Whether it has the beginning of a run. */
  knows(run: string): boolean;
  /** Things in it: what a copy of it takes. */
  readonly size: number;
}

/** The state of a log without events. */
export function emptyState(kind: Kind): State {
  if (kind === "task") return new TaskLog();
  return kind === "session" ? new SessionState() : new TeamState();
}

class SessionState implements State {
  private talk = new ViewBuilder();
  private falls = new WaterfallBuilder();
  private ends = new Map<string, string>();

  take(e: CanonicalEvent): void {
    this.talk.take(e);
    this.falls.take(e);
    if (e.type === "input.requested" && e.data.timeout_seconds)
      this.ends.set(e.data.input_id, new Date(Date.parse(e.time) + e.data.timeout_seconds * 1000).toISOString());
    else if (e.type === "input.answered" || e.type === "input.expired") this.ends.delete(e.data.input_id);
  }

  fork(): State {
    const f = new SessionState();
    f.talk = this.talk.fork();
    f.falls = this.falls.fork();
    f.ends = new Map(this.ends);
    return f;
  }

  get items(): readonly ViewItem[] {
    return this.talk.view.items;
  }

  key(item: Shown): string {
    const { kind, run, id } = item as ViewItem;
    return `${kind} ${run} ${id}`;
  }

  get questions(): Asked[] {
    return this.talk.view.questions.map((question) => ({ question, ends: this.ends.get(question.id) }));
  }

  get active(): number {
    return this.talk.view.active.length;
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return this.falls.bars;
  }

  get summary(): Summary {
    const { items, questions, active } = this.talk.view;
    const first = items.find((i) => i.kind === "user");
    let unknowns = 0;
    for (const i of items) if (i.kind === "tool" && i.status === "unknown") unknowns++;
    const state = questions.length > 0 ? "waiting" : active.length > 0 ? "running" : "idle";
    return { name: first?.text ?? "", state, unknowns, status: "", members: [] };
  }

  knows(run: string): boolean {
    return this.talk.ofRun(run)[0]?.kind === "user";
  }

  get size(): number {
    return this.talk.view.items.length + this.falls.bars.bars.length;
  }
}

const noBars = { bars: [], until: 0 };

class TeamState implements State {
  private team = new TeamViewBuilder();

  take(e: CanonicalEvent): void {
    this.team.take(e);
  }

  fork(): State {
    const f = new TeamState();
    f.team = this.team.fork();
    return f;
  }

  get items(): readonly Shown[] {
    return this.team.view.messages;
  }

  key(item: Shown): string {
    const m = item as { from: string; to: string | undefined };
    return `${m.from} ${m.to ?? ""} ${item.id}`;
  }

  get questions(): Asked[] {
    return [];
  }

  get active(): number {
    return 0;
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return noBars;
  }

  get summary(): Summary {
    const { status, members } = this.team.view;
    return { name: "", state: "idle", unknowns: 0, status, members };
  }

  knows(): boolean {
    return true;
  }

  get size(): number {
    return this.team.view.messages.length + this.team.view.members.length;
  }
}

class TaskLog implements State {
  private task = new TaskBuilder();
  readonly items: readonly Shown[] = [];
  readonly questions: Asked[] = [];
  readonly active = 0;

  take(e: CanonicalEvent): void {
    this.task.take(e);
  }

  fork(): State {
    const f = new TaskLog();
    f.task = this.task.fork();
    return f;
  }

  key(item: Shown): string {
    return item.id;
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return this.task.bars;
  }

  get summary(): Summary {
    const { state } = this.task;
    const unknowns = state.calls.filter((c) => c.status === "unknown").length;
    return { name: state.type, state: "idle", unknowns, status: state.status, members: [], task: state };
  }

  knows(): boolean {
    return true;
  }

  get size(): number {
    return this.task.bars.bars.length + this.task.state.notes.length;
  }
}
