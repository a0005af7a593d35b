/**
 * What a page shows of a session: made of the events of its log, in any front end.
 *
 * @packageDocumentation
 */
import type { CanonicalEvent, Step } from "./generated/events.js";
import { type Question, Questions, unwrap } from "./questions.js";

/** A step of a plan as it is now. */
export interface ViewStep {
  id: string;
  title: string;
  dependencies: readonly string[];
  status: "waiting" | "running" | "completed" | "failed" | "cancelled";
  /** Its result, why it failed, or why it was skipped: user_request, dependency_failed, timeout. */
  text: string;
}

/** One thing that a page shows, in the order in which they began. */
export type ViewItem = { id: string; run: string } & (
  | { kind: "user"; text: string; pending?: true }
  | ({ kind: "answer"; done: boolean; step: string | undefined; thought?: Thought } & Text)
  | {
      kind: "tool";
      name: string;
      arguments: unknown;
      step: string | undefined;
      status: "called" | "running" | "completed" | "failed" | "unknown";
      text: string;
    }
  | { kind: "plan"; summary: string; steps: readonly ViewStep[]; status: "waiting" | "running" | "done" | "cancelled" }
  | ({ kind: "decision" } & Decision)
  | ({ kind: "retry" } & Retry)
  | { kind: "notice"; code: string; text: string }
  | { kind: "end"; code: string; text: string }
);

/** A text of a model. It may be empty while the model thinks, or where it only calls tools after it. */
export interface Text {
  text: string;
  /** What the model thought before and between its text: no part of it. */
  reasoning?: string;
  /** Why the text is not complete. `detail` is the provider's word for `other`. */
  stop?: { reason: "length" | "filtered" | "refused" | "other" | "stopped"; detail?: string };
}

/** When a model thought: milliseconds since 1970. */
export interface Thought {
  from: number;
  to: number;
}

/** What became of a question. */
export interface Decision {
  /** approve, modify, reject, answer; expired, withdrawn: nobody has answered. */
  code: string;
  /** What it was about: plan, tool, budget, agent. */
  scope: string;
  /** The tool that it was about; empty: none. */
  name: string;
  /** Who made it. */
  by?: string;
  /** When: milliseconds since 1970. */
  at: number;
  /** The reason that was given. */
  text: string;
}

/** A model is asked again, or a piece of work is done again. It is there until that goes on. */
export interface Retry {
  step: string | undefined;
  /** The problem. */
  code: string;
  text: string;
  /** The try that failed, and how many there are. */
  try: number;
  tries: number;
  /** Milliseconds between the failure and the next try. */
  pause: number;
  /** When the try failed: milliseconds since 1970. */
  at: number;
  /** The model that is asked next, if it is another one. */
  model?: string;
}

type Item<K extends ViewItem["kind"]> = Extract<ViewItem, { kind: K }>;

/** A session as a page shows it. */
export interface View {
  items: readonly ViewItem[];
  questions: readonly Question[];
  /** Runs that have been accepted and have not ended. */
  active: readonly string[];
  /** The sequence of the last event in it. */
  seq: number;
}

/** A session without events. */
export const emptyView: View = { items: [], questions: [], active: [], seq: 0 };

/** Makes views of events, one after the other. Each view is a value of its own that does not change any more. */
export class ViewBuilder {
  private book = new Questions();
  private items: ViewItem[] = [];
  private active: readonly string[] = [];
  private questions: Question[] = [];
  private seq = 0;
  private changed = true;
  private last: View = emptyView;
  /** Messages that the log does not have yet, by the ids under which they are sent. */
  private readonly sent = new Map<string, Item<"user">>();
  /** The ids under which the messages of the log were sent. */
  private readonly received = new Set<string>();
  /** So that nothing is looked for where it cannot be. Made when it is first needed. */
  private index: Index | undefined;

  /** A builder that goes on from here by itself: what either takes from now on does not show in the other. */
  fork(): ViewBuilder {
    const f = new ViewBuilder();
    f.book = this.book.fork();
    f.items = [...this.items];
    f.active = this.active;
    f.questions = this.questions;
    f.seq = this.seq;
    return f;
  }

  /** A builder that goes on from a view. */
  static from(view: View): ViewBuilder {
    const f = new ViewBuilder();
    f.book = Questions.of(view.questions);
    f.items = [...view.items];
    f.active = view.active;
    f.questions = f.book.list;
    f.seq = view.seq;
    return f;
  }

  /** The view after all events so far; the same object until an event changes it. */
  get view(): View {
    if (this.changed)
      this.last = { items: [...this.items, ...this.sent.values()], questions: this.questions, active: this.active, seq: this.seq };
    this.changed = false;
    return this.last;
  }

  /** Shows a message that is being sent, at the end and as `pending`, until the log has it or the server refuses it. */
  send(id: string, text: string): void {
    if (this.received.has(id)) return;
    this.sent.set(id, { kind: "user", id, run: "", text, pending: true });
    this.changed = true;
  }

  /** Removes a message that the server has refused. */
  drop(id: string): void {
    this.changed = this.sent.delete(id) || this.changed;
  }

  /** Takes the next event. */
  take(e: CanonicalEvent): void {
    this.seq = e.sequence;
    this.changed = true;
    if (e.type === "message.received") {
      this.received.add(e.data.message_id);
      this.sent.delete(e.data.message_id);
    }
    if (this.book.take(e)) this.questions = this.book.list;
    takers[e.type]?.(this, e as never);
  }

  /** @internal */
  add(item: ViewItem): void {
    const i = this.at(item.kind, item.run, item.id);
    if (i < 0) {
      this.items.push(item);
      this.index?.add(item);
      return;
    }
    this.items[i] = item;
  }

  /** @internal */
  change<K extends ViewItem["kind"]>(kind: K, run: string, id: string, f: (item: Item<K>) => Partial<Item<K>>): void {
    const i = this.at(kind, run, id);
    const item = this.items[i] as Item<K> | undefined;
    if (item) this.items[i] = { ...item, ...f(item) } as ViewItem;
  }

  /** @internal */
  remove(kind: ViewItem["kind"], run: string, id: string): void {
    const i = this.at(kind, run, id);
    if (i < 0) return;
    this.items.splice(i, 1);
    this.index = undefined;
  }

  /** @internal */
  step(run: string, id: string, f: (s: ViewStep) => Partial<ViewStep>): void {
    for (const p of this.ofRun(run)) {
      if (p.kind !== "plan" || !p.steps.some((s) => s.id === id)) continue;
      this.change("plan", run, p.id, () => ({ status: "running", steps: p.steps.map((s) => (s.id === id ? { ...s, ...f(s) } : s)) }));
    }
  }

  /** @internal */
  begin(run: string): void {
    this.active = [...this.active, run];
  }

  /** @internal */
  end(run: string, cancelled: boolean): void {
    this.active = this.active.filter((r) => r !== run);
    for (const p of this.ofRun(run)) {
      if (p.kind === "plan")
        this.change("plan", run, p.id, () => (cancelled ? { status: "cancelled", steps: dropped(p.steps) } : { status: "done" }));
      if (p.kind === "answer" && !p.done) this.change("answer", run, p.id, () => ({ done: true }));
      if (p.kind === "retry") this.remove("retry", run, p.id);
    }
  }

  /** @internal Changes the reasoning of a message, which begins with it if there is none. */
  think(
    d: { run_id: string; message_id: string; step_id?: string },
    time: string,
    f: (reasoning: string, t: Thought) => [string, Thought],
  ): void {
    const { run_id: run, message_id: id } = d;
    const at = Date.parse(time);
    if (this.at("answer", run, id) < 0) this.add({ kind: "answer", id, run, text: "", done: false, step: d.step_id });
    this.change("answer", run, id, (m) => {
      const [reasoning, thought] = f(m.reasoning ?? "", m.thought ?? { from: at, to: at });
      return { reasoning, thought };
    });
  }

  /** @internal Adds the end of a question. The outcome of a client's tool shows at the tool itself. */
  decided(
    d: { input_id: string; run_id: string; scope?: string; tool?: string; by?: string; feedback?: string },
    time: string,
    code: string,
  ): void {
    if (d.scope === "client_tool") return;
    this.add({
      kind: "decision",
      id: d.input_id,
      run: d.run_id,
      code,
      scope: d.scope || (d.tool ? "tool" : "plan"),
      name: d.tool ?? "",
      at: Date.parse(time),
      text: d.feedback ?? "",
      ...(d.by ? { by: d.by } : {}),
    });
  }

  /** @internal Shows that something is tried again, until it goes on. */
  again(
    d: { run_id: string; step_id?: string; code: string; message: string; retry_after_ms: number; model?: string | undefined },
    time: string,
    failed: number,
    tries: number,
  ): void {
    this.add({
      kind: "retry",
      id: d.step_id || "model",
      run: d.run_id,
      step: d.step_id,
      code: d.code,
      text: d.message,
      try: failed,
      tries,
      pause: d.retry_after_ms,
      at: Date.parse(time),
      ...(d.model ? { model: d.model } : {}),
    });
  }

  /** @internal Forgets that the model was asked again. */
  goesOn(d: { run_id: string; step_id?: string }): void {
    this.remove("retry", d.run_id, d.step_id || "model");
  }

  /** @internal */
  says(run: string, text: string): boolean {
    return this.ofRun(run).some((p) => p.kind === "answer" && p.step === undefined && p.text === text);
  }

  /** @internal The items of a run. */
  ofRun(run: string): ViewItem[] {
    this.index ??= new Index(this.items);
    const first = this.index.first.get(run);
    const found: ViewItem[] = [];
    for (let i = first === undefined ? -1 : this.items.length - 1; i >= 0; i--) {
      const p = this.items[i] as ViewItem;
      if (p.run !== run) continue;
      found.push(p);
      if (key(p.kind, run, p.id) === first) break;
    }
    return found.reverse();
  }

  /** The place of an item. Ids count within a run: some models number their calls anew for each answer. */
  private at(kind: ViewItem["kind"], run: string, id: string): number {
    this.index ??= new Index(this.items);
    if (!this.index.keys.has(key(kind, run, id))) return -1;
    return this.items.findLastIndex((p) => p.id === id && p.kind === kind && p.run === run);
  }
}

const key = (kind: ViewItem["kind"], run: string, id: string) => `${kind} ${run} ${id}`;

/** Which items a view has. */
class Index {
  readonly keys = new Set<string>();
  /** The key of the first item of each run. */
  readonly first = new Map<string, string>();

  constructor(items: readonly ViewItem[]) {
    for (const p of items) this.add(p);
  }

  add(p: ViewItem): void {
    const k = key(p.kind, p.run, p.id);
    this.keys.add(k);
    if (!this.first.has(p.run)) this.first.set(p.run, k);
  }
}

type Taker<T extends CanonicalEvent["type"]> = (v: ViewBuilder, e: Extract<CanonicalEvent, { type: T }>) => void;

const takers: { [T in CanonicalEvent["type"]]?: Taker<T> } = {
  "message.received": (v, { data: d }) => {
    v.begin(d.run_id);
    v.add({ kind: "user", id: d.message_id, run: d.run_id, text: d.content });
  },
  "run.started": (v, { data: d }) => {
    if (d.repairs) v.begin(d.run_id); // it has no message of its own
  },
  "message.delta": (v, { data: d, time }) => {
    v.goesOn(d);
    if (d.stage === "planning") return;
    let known = false;
    v.change("answer", d.run_id, d.message_id, (m) => {
      known = true;
      const begins = m.text === "" && m.thought;
      return { text: m.text + d.text, ...(begins ? { thought: { from: begins.from, to: Date.parse(time) } } : {}) };
    });
    if (!known) v.add({ kind: "answer", id: d.message_id, run: d.run_id, text: d.text, done: false, step: d.step_id });
  },
  "message.completed": (v, { data: d }) => {
    v.goesOn(d);
    const text = d.stage === "planning" ? "" : d.content;
    let known = false;
    v.change("answer", d.run_id, d.message_id, () => {
      known = true;
      return { text, done: true, ...stopOf(d) };
    });
    if (!known && text) v.add({ kind: "answer", id: d.message_id, run: d.run_id, text, done: true, step: d.step_id, ...stopOf(d) });
  },
  "reasoning.delta": (v, { data: d, time }) => {
    v.goesOn(d);
    v.think(d, time, (reasoning, t) => [reasoning + d.text, { from: t.from, to: Date.parse(time) }]);
  },
  "reasoning.completed": (v, { data: d, time }) => {
    if (d.content) v.think(d, time, (_, t) => [d.content, t]);
  },
  "request.failed": (v, { data: d, time }) => v.again({ ...d, model: d.next_model }, time, d.try, d.max_tries),
  "retry.scheduled": (v, { data: d, time }) => v.again(d, time, d.attempt, d.max_attempts),
  "job.started": (v, { data: d }) => v.goesOn(d),
  "message.discarded": (v, { data: d }) => v.remove("answer", d.run_id, d.message_id),
  notice: (v, { data: d, id }) => {
    if (d.level === "warning" && !aboutAnswers.has(d.code))
      v.add({ kind: "notice", id, run: d.run_id ?? "", code: d.code, text: d.message });
  },
  "tool.called": (v, { data: d }) =>
    v.add({
      kind: "tool",
      id: d.call_id,
      run: d.run_id,
      name: d.tool,
      arguments: d.arguments,
      step: d.step_id,
      status: "called",
      text: "",
    }),
  "tool.started": (v, { data: d }) => v.change("tool", d.run_id, d.call_id, () => ({ status: "running" })),
  "tool.completed": (v, { data: d }) => v.change("tool", d.run_id, d.call_id, () => ({ status: "completed", text: d.result })),
  "tool.failed": (v, { data: d }) => v.change("tool", d.run_id, d.call_id, () => ({ status: "failed", text: d.message })),
  "tool.unknown": (v, { data: d }) => v.change("tool", d.run_id, d.call_id, () => ({ status: "unknown", text: d.message })),
  "plan.completed": (v, { data: d }) =>
    v.add({ kind: "plan", id: d.plan_id, run: d.run_id, summary: d.summary ?? "", steps: waiting(d.steps), status: "waiting" }),
  "plan.cancelled": (v, { data: d }) => v.change("plan", d.run_id, d.plan_id, (p) => ({ status: "cancelled", steps: dropped(p.steps) })),
  "input.answered": (v, { data: d, time }) => {
    const steps = d.steps;
    for (const p of steps ? v.ofRun(d.run_id) : [])
      if (steps && p.kind === "plan" && p.status === "waiting") v.change("plan", d.run_id, p.id, () => ({ steps: waiting(steps) }));
    v.decided(d, time, d.decision);
  },
  "input.expired": (v, { data: d, time }) => v.decided(d, time, d.withdrawn ? "withdrawn" : "expired"),
  "step.started": (v, { data: d }) => v.step(d.run_id, d.step.id, () => ({ status: "running" })),
  "step.completed": (v, { data: d }) => v.step(d.run_id, d.step_id ?? "", () => ({ status: "completed", text: d.output })),
  "step.failed": (v, { data: d }) => v.step(d.run_id, d.step_id ?? "", () => ({ status: "failed", text: d.message })),
  "step.cancelled": (v, { data: d }) => v.step(d.run_id, d.step_id ?? "", () => ({ status: "cancelled", text: d.reason ?? "" })),
  "step.restarted": (v, { data: d }) => v.step(d.run_id, d.step_id ?? "", () => ({ status: "waiting", text: "" })),
  "run.completed": (v, { data: d }) => {
    if (d.content && !v.says(d.run_id, d.content))
      v.add({ kind: "answer", id: `${d.run_id}-answer`, run: d.run_id, text: d.content, done: true, step: undefined });
    v.end(d.run_id, d.outcome === "rejected" || d.outcome === "cancelled");
  },
  "run.failed": (v, { data: d }) => {
    v.add({ kind: "end", id: d.run_id, run: d.run_id, code: d.code, text: d.answer || d.message });
    v.end(d.run_id, false);
  },
  "run.cancelled": (v, { data: d }) => {
    v.add({ kind: "end", id: d.run_id, run: d.run_id, code: "RUN_CANCELLED", text: "The run was stopped." });
    v.end(d.run_id, true);
  },
};

/** The codes of notices that the answers have themselves. */
const aboutAnswers: ReadonlySet<string> = new Set(["ANSWER_CUT", "ANSWER_WITHHELD", "ANSWER_REFUSED", "ANSWER_UNSURE"]);

/** Why a message is not complete. */
function stopOf(d: { stop_reason: string; stop_detail?: string }): Pick<Text, "stop"> {
  const { stop_reason: reason, stop_detail: detail } = d;
  switch (reason) {
    case "length":
    case "filtered":
    case "refused":
    case "other":
    case "stopped":
      return { stop: { reason, ...(detail ? { detail } : {}) } };
  }
  return {};
}

/** The steps of a plan that is not carried out any more. */
function dropped(steps: readonly ViewStep[]): ViewStep[] {
  return steps.map((s) => (s.status === "waiting" || s.status === "running" ? { ...s, status: "cancelled" } : s));
}

function waiting(steps: readonly Step[]): ViewStep[] {
  return steps.map((s) => ({ id: s.id, title: s.title, dependencies: s.dependencies ?? [], status: "waiting", text: "" }));
}

/** A member of a team as a page shows it. */
export interface TeamMember {
  /** The path of names from the team. */
  route: string;
  status: string;
}

/** A team as a page shows it. */
export interface TeamView {
  status: string;
  members: readonly TeamMember[];
  /**
   * What people and members have said, in the order in which it began. `to` is there on messages that were sent, and `board` on those of
   * the board of tasks. Without a name in `from`, and without `board`, people have said it.
   */
  messages: readonly ({ id: string; from: string; to: string | undefined; board?: boolean; done: boolean } & Text)[];
  questions: readonly Question[];
  seq: number;
}

/** A team without events. */
export const emptyTeamView: TeamView = { status: "", members: [], messages: [], questions: [], seq: 0 };

/** Makes views of a team's events, one after the other. */
export class TeamViewBuilder {
  private book = new Questions();
  private members = new Map<string, TeamMember>();
  private messages = new Map<string, TeamView["messages"][number]>();
  private status = "";
  private seq = 0;
  private changed = true;
  private last = emptyTeamView;

  /** A builder that goes on from here by itself: what either takes from now on does not show in the other. */
  fork(): TeamViewBuilder {
    const f = new TeamViewBuilder();
    f.book = this.book.fork();
    f.members = new Map(this.members);
    f.messages = new Map(this.messages);
    f.status = this.status;
    f.seq = this.seq;
    return f;
  }

  /** A builder that goes on from a view. */
  static from(view: TeamView): TeamViewBuilder {
    const f = new TeamViewBuilder();
    f.book = Questions.of(view.questions);
    f.members = new Map(view.members.map((m) => [m.route, m]));
    for (const m of view.messages) {
      const team = m.to === undefined ? m.from : m.to.slice(0, Math.max(0, m.to.lastIndexOf("/")));
      f.messages.set(`${team} ${m.id}`, m);
    }
    f.status = view.status;
    f.seq = view.seq;
    return f;
  }

  /** The view after all events so far; the same object until an event changes it. */
  get view(): TeamView {
    if (this.changed) {
      const { status, seq } = this;
      this.last = { status, seq, members: [...this.members.values()], messages: [...this.messages.values()], questions: this.book.list };
    }
    this.changed = false;
    return this.last;
  }

  /** Takes the next event. */
  take(e: CanonicalEvent): void {
    this.seq = e.sequence;
    this.changed = true;
    this.book.take(e);
    const { event, route } = unwrap(e);
    const from = route.join("/");
    if (e.type === "team.member_event" && e.data.status) this.members.set(from, { route: from, status: e.data.status });
    if (event.type === "team.status" && route.length === 0) this.status = event.data.new_status;
    if (event.type === "team.message") {
      const { message_id: id, content: text, member, sender } = event.data;
      const to = [...route, member].join("/");
      const board = sender?.kind === "system" ? { board: true } : {};
      this.messages.set(`${from} ${id}`, { id, from: sender?.name ?? "", to, ...board, text, done: true });
    }
    const said = this.text(from, event);
    if (said) this.messages.set(`${from} ${said.id}`, { from, to: undefined, ...said });
    if (event.type === "message.discarded") this.messages.delete(`${from} ${event.data.message_id}`);
  }
  /** What a member says now. */
  private text(from: string, e: CanonicalEvent): ({ id: string; done: boolean } & Text) | undefined {
    switch (e.type) {
      case "message.delta":
      case "message.completed":
      case "reasoning.delta":
      case "reasoning.completed":
        break;
      default:
        return undefined;
    }
    const { message_id: id } = e.data;
    const old = this.messages.get(`${from} ${id}`);
    const { text = "", reasoning = "" } = old ?? {};
    const now = (text: string, reasoning: string) => ({ id, done: false, text, ...(reasoning ? { reasoning } : {}) });
    if (e.type === "message.delta") return now(text + e.data.text, reasoning);
    if (e.type === "reasoning.delta") return now(text, reasoning + e.data.text);
    if (e.type === "reasoning.completed") return e.data.content ? now(text, e.data.content) : undefined;
    if (!e.data.content && !old) return undefined;
    return { ...now(e.data.content, reasoning), done: true, ...stopOf(e.data) };
  }
}
