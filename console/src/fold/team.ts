import { type CanonicalEvent, type Question, unwrap } from "@waggle-dev/client";
import { type View, ViewBuilder } from "@waggle-dev/client/view";
import { type Arrow, ArrowBook, above, join, last, type Side } from "./arrows.ts";

/** A member of a team: a model or an agent, or a nested team. */
export interface Member {
  /** The path of names from the team. */
  route: string;
  name: string;
  kind: "agent" | "team";
  role: string;
  /** The word of the log for its state; empty: it has not begun. */
  status: string;
}

/** A task on the board of a team. */
export interface Task {
  /** The path of the team that has the board; empty: the team itself. */
  team: string;
  id: string;
  name: string;
  about: string;
  /** The path of the member that has it. */
  assignee: string;
  /** The ids of the tasks of the same board that come first. */
  needs: readonly string[];
  status: string;
  /** The event that changed it last. */
  seq: number;
}

/** Someone or something that a member cannot go on without. */
export type Wait =
  | { for: "people"; scope: string; tool: string }
  /** Another member has to complete a task first. */
  | { for: "member"; route: string; task: string; name: string };

/** The definition of a team, as much as the fold needs of it. */
export interface Definition {
  name: string;
  members: readonly { name: string; role?: string; team?: Definition }[];
}

/** What a fold goes on from. */
export interface Parts {
  name: string;
  status: string;
  closed: boolean;
  until: number;
  /** With what each one says, and the questions that its job waits for. */
  members: readonly (Member & { view: View | undefined; suspended: readonly string[] | undefined })[];
  tasks: readonly Task[];
  arrows: readonly Arrow[];
  sides: readonly Side[];
}

type Boards = ReadonlyMap<string, readonly Task[]>;

/** Folds the log of a team: who is in it, how they stand, what they wait for, say and send to each other. */
export class TeamFold {
  name = "";
  status = "";
  closed = false;
  /** In the order of the tree: each team stands before its members. */
  private people: readonly Member[] = [];
  private at: ReadonlyMap<string, number> = new Map();
  private boards: Boards = new Map();
  private suspended: ReadonlyMap<string, readonly string[]> = new Map();
  private talks = new Map<string, { builder: ViewBuilder; own: boolean }>();
  private sent = new ArrowBook();
  /** The time of the newest event. */
  until = 0;
  /** Things in the conversations of members. */
  private things = 0;

  /** A fold that goes on from its parts. */
  static from(o: Parts): TeamFold {
    const f = new TeamFold();
    Object.assign(f, { name: o.name, status: o.status, closed: o.closed, until: o.until });
    f.people = o.members.map(({ route, name, kind, role, status }) => ({ route, name, kind, role, status }));
    f.at = new Map(f.people.map((m, i) => [m.route, i]));
    f.suspended = new Map(o.members.flatMap((m) => (m.suspended ? [[m.route, m.suspended] as const] : [])));
    for (const m of o.members) {
      if (!m.view) continue;
      f.talks.set(m.route, { builder: ViewBuilder.from(m.view), own: true });
      f.things += m.view.items.length;
    }
    const boards = new Map<string, Task[]>();
    for (const task of o.tasks) boards.set(task.team, [...(boards.get(task.team) ?? []), task]);
    f.boards = boards;
    f.sent = ArrowBook.from(o.arrows, o.sides);
    return f;
  }

  /** A fold that goes on from here by itself: what either takes from now on does not show in the other. */
  fork(): TeamFold {
    const f = new TeamFold();
    Object.assign(f, { name: this.name, status: this.status, closed: this.closed, people: this.people, at: this.at });
    Object.assign(f, { boards: this.boards, suspended: this.suspended, things: this.things, until: this.until });
    for (const talk of this.talks.values()) talk.own = false;
    f.talks = new Map([...this.talks].map(([route, { builder }]) => [route, { builder, own: false }]));
    f.sent = this.sent.fork();
    return f;
  }

  get members(): readonly Member[] {
    return this.people;
  }

  get arrows(): readonly Arrow[] {
    return this.sent.all;
  }

  /** Those that messages go between, in the order in which they first did. */
  get sides(): readonly Side[] {
    return this.sent.sides;
  }

  /** The questions that the job of a member waits for. */
  waitsFor(route: string): readonly string[] | undefined {
    return this.suspended.get(route);
  }

  get tasks(): Task[] {
    return [...this.boards.values()].flat();
  }

  /** How much it takes to keep a copy of it. */
  get size(): number {
    return this.people.length + this.sent.all.length + this.things;
  }

  /** What a member says, calls and is asked. */
  talk(route: string): View | undefined {
    return this.talks.get(route)?.builder.view;
  }

  /** Takes the members of a definition, before or in place of the event that has it. */
  define(d: Definition, path = ""): void {
    if (path === "") this.name = d.name;
    const add: Member[] = [];
    const walk = (team: Definition, above: string) => {
      for (const m of team.members) {
        const route = join(above, m.name);
        if (!this.at.has(route)) add.push({ route, name: m.name, kind: m.team ? "team" : "agent", role: m.role ?? "", status: "" });
        if (m.team) walk(m.team, route);
      }
    };
    walk(d, path);
    if (add.length > 0) this.place(path, add);
  }

  /** Puts members behind those that the team with the path has. */
  private place(path: string, add: readonly Member[]): void {
    const last = path === "" ? -1 : this.people.findLastIndex((m) => m.route === path || m.route.startsWith(`${path}/`));
    this.people = this.people.toSpliced(last < 0 ? this.people.length : last + 1, 0, ...add);
    this.at = new Map(this.people.map((m, i) => [m.route, i]));
  }

  /** Takes the next event. */
  take(e: CanonicalEvent): void {
    this.until = Math.max(this.until, Date.parse(e.time));
    const { event, route } = unwrap(e);
    const path = route.join("/");
    const inner = innermost(e);
    if (inner?.type === "team.member_event") this.ofMember(path, inner, event);
    else this.ofTeam(path, event, e);
  }

  private ofMember(route: string, inner: Extract<CanonicalEvent, { type: "team.member_event" }>, event: CanonicalEvent): void {
    this.know(route);
    if (begins.has(event.type)) this.things++;
    if (inner.data.status) this.change(route, inner.data.status);
    this.suspend(route, event);
    const known = this.talks.get(route);
    const talk = known?.own ? known : { builder: known ? known.builder.fork() : new ViewBuilder(), own: true };
    this.talks.set(route, talk);
    talk.builder.take(event);
  }

  /** Who sent a message to a member; undefined: the log does not say it any more. */
  sender(route: string, message: string): Side | undefined {
    return this.sent.sender(above(route), message, last(route));
  }

  private ofTeam(path: string, event: CanonicalEvent, e: CanonicalEvent): void {
    switch (event.type) {
      case "team.created":
        this.define(event.data.definition, path);
        return;
      case "team.member_started":
        this.know(join(path, event.data.name), event.data.kind);
        return;
      case "team.status":
        this.turn(path, event.data.new_status);
        return;
      case "team.closed":
        this.turn(path, "closed");
        return;
      case "team.message":
      case "team.message_dropped":
        this.sent.take(path, event, e);
        return;
      case "board.created":
        this.board(
          path,
          event.data.tasks.map((task) => taskOf(path, task, e.sequence)),
        );
        return;
      case "board.updated": {
        const { task_id: id, new_status: status } = event.data;
        const tasks = this.boards.get(path) ?? [];
        this.board(
          path,
          tasks.map((task) => (task.id === id ? { ...task, status, seq: e.sequence } : task)),
        );
      }
    }
  }

  /** The status of a team, or of a nested one. */
  private turn(path: string, status: string): void {
    if (path !== "") this.change(path, status);
    else if (status === "closed") this.closed = true;
    else this.status = status;
  }

  private board(path: string, tasks: readonly Task[]): void {
    this.boards = new Map(this.boards).set(path, tasks);
  }

  /** Has a member, and the teams on the way to it, also if no definition names them. */
  private know(route: string, kind = "agent"): void {
    if (this.at.has(route)) return;
    const path = above(route);
    if (path !== "") this.know(path, "team");
    this.place(path, [{ route, name: last(route), kind: kind === "team" ? "team" : "agent", role: "", status: "" }]);
  }

  private change(route: string, status: string): void {
    const i = this.at.get(route) ?? -1;
    const m = this.people[i];
    if (m && m.status !== status) this.people = this.people.with(i, { ...m, status });
  }

  /** Jobs that wait for people, and go on. */
  private suspend(route: string, e: CanonicalEvent): void {
    if (e.type === "job.suspended") this.suspended = new Map(this.suspended).set(route, e.data.inputs);
    else if (resumes.has(e.type) && this.suspended.has(route)) {
      const rest = new Map(this.suspended);
      rest.delete(route);
      this.suspended = rest;
    }
  }

  /** What each member waits for: people who have been asked, and members whose tasks come first. */
  get waits(): ReadonlyMap<string, readonly Wait[]> {
    const all = new Map<string, Wait[]>();
    const add = (route: string, w: Wait) => all.set(route, [...(all.get(route) ?? []), w]);
    for (const [route, { builder }] of this.talks) {
      const open = builder.view.questions;
      for (const q of open) add(route, { for: "people", scope: q.scope, tool: toolOf(q) });
      if (open.length === 0 && (this.suspended.get(route)?.length ?? 0) > 0) add(route, { for: "people", scope: "job", tool: "" });
    }
    for (const tasks of this.boards.values()) {
      const known = new Map(tasks.map((task) => [task.id, task]));
      for (const task of tasks) {
        if (done.has(task.status)) continue;
        for (const id of task.needs) {
          const first = known.get(id);
          if (first && first.status !== "completed")
            add(task.assignee, { for: "member", route: first.assignee, task: first.id, name: first.name });
        }
      }
    }
    for (const [route, list] of all) all.set(route, distinct(list));
    return all;
  }
}

const resumes: ReadonlySet<string> = new Set([
  "job.started",
  "input.answered",
  "input.expired",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "member.closed",
]);

const begins: ReadonlySet<string> = new Set(["message.received", "message.started", "tool.called", "plan.completed"]);

const done: ReadonlySet<string> = new Set(["completed", "failed"]);

function toolOf(q: Question): string {
  return (q.data as { tool?: string }).tool ?? "";
}

function distinct(waits: readonly Wait[]): Wait[] {
  return [...new Map(waits.map((w) => [JSON.stringify(w), w])).values()];
}

function taskOf(
  team: string,
  d: { task_id: string; task_name: string; assignee_name: string; description: string; dependencies: string[]; status: string },
  seq: number,
): Task {
  const { task_id: id, task_name: name, description: about, dependencies, status } = d;
  return { team, id, name, about, assignee: join(team, d.assignee_name), needs: dependencies ?? [], status, seq };
}

/** The event that holds an event of a log of the innermost team. */
function innermost(e: CanonicalEvent): CanonicalEvent | undefined {
  let outer: CanonicalEvent | undefined;
  for (let x = e; ; ) {
    if (x.type === "team.member_event") [outer, x] = [x, x.data.event as CanonicalEvent];
    else if (x.type === "team.sub_team_event") [outer, x] = [x, x.data.sub_team_event as CanonicalEvent];
    else return outer;
  }
}
