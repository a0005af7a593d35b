import type { CanonicalEvent } from "@waggle-dev/client";
import type { Bar, BarState } from "./bars.ts";
import { canonical } from "./canonical.ts";
import { head } from "./text.ts";

/** One agent's hold of a task. */
export interface Attempt {
  n: number;
  agent: string;
  from: string;
  to: string | undefined;
  /** What the agent said last of its state. */
  says: string;
  /** How it ended: the status of the task, or why the agent lost it. */
  end: string;
  lost: boolean;
  /** Reports that came too late. */
  refused: number;
  seq: number;
}

/** A call of a tool within a task. */
export interface TaskCall {
  id: string;
  tool: string;
  provider: string;
  status: "running" | "completed" | "failed" | "unknown";
  error: string;
  ms: number | undefined;
  seq: number;
}

/** A task that the agent gave to another one. */
export interface Child {
  id: string;
  agent: string;
  type: string;
  status: string;
  seq: number;
}

/** A question of the agent. */
export interface Asking {
  id: string;
  message: unknown;
  state: "waiting" | "answered" | "expired";
  answer: unknown;
  by: string;
  seq: number;
}

/** A task as of an event of its log. */
export interface TaskState {
  type: string;
  wanted: string;
  input: unknown;
  /** The task that it repeats, the one above it, and the log whose job it is. */
  retryOf: string;
  parent: string;
  session: string;
  kind: string;
  status: string;
  /** Why it waits for an agent. */
  queued: string;
  principal: string;
  attempts: readonly Attempt[];
  calls: readonly TaskCall[];
  children: readonly Child[];
  questions: readonly Asking[];
  notes: readonly { at: string; text: string; seq: number }[];
  result: unknown;
  code: string;
  error: string;
  created: string;
  ended: string;
}

const none: TaskState = {
  type: "",
  wanted: "",
  input: undefined,
  retryOf: "",
  parent: "",
  session: "",
  kind: "",
  status: "",
  queued: "",
  principal: "",
  attempts: [],
  calls: [],
  children: [],
  questions: [],
  notes: [],
  result: undefined,
  code: "",
  error: "",
  created: "",
  ended: "",
};

/** The newest notifications and refusals that a page shows. */
const mostNotes = 50;

/** Folds the log of a task. A state is a value that does not change. */
export class TaskBuilder {
  state: TaskState = none;
  private all: Bar[] = [];
  private last = 0;
  /** The sequence of the event that is taken. */
  private seq = 0;

  /** A builder that goes on from a state and its bars. */
  static from(state: TaskState, bars: readonly Bar[], until: number): TaskBuilder {
    const f = new TaskBuilder();
    f.state = state;
    f.all = [...bars];
    f.last = until;
    return f;
  }

  fork(): TaskBuilder {
    const f = new TaskBuilder();
    f.state = this.state;
    f.all = [...this.all];
    f.last = this.last;
    return f;
  }

  get bars(): { bars: readonly Bar[]; until: number } {
    return { bars: this.all, until: this.last };
  }

  take(e: CanonicalEvent): void {
    this.seq = e.sequence;
    const at = Date.parse(e.time);
    this.last = Math.max(this.last, Number.isNaN(at) ? 0 : at);
    const next = this.next(e, at);
    if (next) this.state = { ...this.state, ...next };
  }

  private next(e: CanonicalEvent, at: number): Partial<TaskState> | undefined {
    const s = this.state;
    switch (e.type) {
      case "task.created": {
        const d = e.data;
        this.begin({ id: "task", kind: "step", name: "task", seq: e.sequence, state: "running" }, at);
        return {
          type: d.task_type ?? "",
          wanted: d.wanted_name || d.wanted_id || (d.capabilities ?? []).join(", "),
          input: d.data,
          retryOf: d.retry_of ?? "",
          parent: d.parent_id ?? "",
          session: d.session ?? "",
          kind: d.kind || "session",
          status: "created",
          principal: d.principal ?? "",
          created: e.time,
        };
      }
      case "task.queued":
        this.begin({ id: `queue ${e.sequence}`, kind: "queue", name: "", seq: e.sequence, state: "waiting" }, at);
        return { status: "queued", queued: e.data.reason };
      case "task.assigned":
      case "task.reported":
      case "task.released":
      case "task.refused":
      case "task.finished":
        return this.attempt(e, at);
      case "task.asked":
      case "task.messaged":
      case "task.ask_expired":
        return this.asked(e, at);
      case "call.started":
      case "call.finished":
        return this.called(e, at);
      case "child.created": {
        const d = e.data;
        const child: Child = {
          id: d.child_id,
          agent: d.child_agent_name || d.child_agent_id || "",
          type: d.task_type ?? "",
          status: "running",
          seq: e.sequence,
        };
        this.begin({ id: `child ${d.child_id}`, kind: "step", name: child.agent || child.id, seq: e.sequence, state: "running" }, at);
        return { children: [...s.children.filter((c) => c.id !== d.child_id), child] };
      }
      case "child.finished": {
        const d = e.data;
        this.end(`child ${d.child_id}`, at, ended(d.status));
        return { children: s.children.map((c) => (c.id === d.child_id ? { ...c, status: d.status } : c)) };
      }
      case "task.notified":
        return { notes: [...s.notes, { at: e.time, text: text(e.data.message) || text(e.data.data), seq: e.sequence }].slice(-mostNotes) };
    }
    return undefined;
  }

  private attempt(e: CanonicalEvent, at: number): Partial<TaskState> | undefined {
    const s = this.state;
    const d = e.data as { attempt?: number; agent_name?: string; agent_id?: string };
    const n = d.attempt ?? 0;
    const change = (x: Partial<Attempt>) => s.attempts.map((a) => (a.n === n ? { ...a, ...x } : a));
    switch (e.type) {
      case "task.assigned": {
        this.end("queue", at, "completed");
        const agent = d.agent_name || d.agent_id || "";
        this.begin(
          { id: `attempt ${n}`, kind: "job", name: `${agent.replaceAll(" ", "\u00a0")} ${n}`, seq: e.sequence, state: "running" },
          at,
        );
        const one: Attempt = { n, agent, from: e.time, to: undefined, says: "", end: "", lost: false, refused: 0, seq: e.sequence };
        return { status: "running", queued: "", attempts: [...s.attempts, one] };
      }
      case "task.reported":
        return { attempts: change({ says: e.data.status }) };
      case "task.refused":
        return { attempts: s.attempts.map((a) => (a.agent === e.data.by || a.n === n ? { ...a, refused: a.refused + 1 } : a)) };
      case "task.released":
        this.end(`attempt ${n}`, at, "failed");
        return { status: "queued", attempts: change({ to: e.time, end: e.data.reason, lost: true }) };
      case "task.finished": {
        for (const b of this.all) this.end(b.id, at, b.kind === "people" || b.kind === "queue" ? "cancelled" : ended(e.data.status));
        const { status, result, code, error } = e.data;
        return {
          status,
          result,
          code: code ?? "",
          error: error ?? "",
          ended: e.time,
          queued: "",
          attempts: s.attempts.map((a) => (a.to === undefined ? { ...a, to: e.time, end: status } : a)),
        };
      }
    }
    return undefined;
  }

  private asked(e: CanonicalEvent, at: number): Partial<TaskState> | undefined {
    const s = this.state;
    const change = (id: string, x: Partial<Asking>) => s.questions.map((q) => (q.id === id && q.state === "waiting" ? { ...q, ...x } : q));
    switch (e.type) {
      case "task.asked": {
        const q: Asking = { id: e.data.input_id, message: e.data.message, state: "waiting", answer: undefined, by: "", seq: e.sequence };
        this.begin({ id: `ask ${q.id}`, kind: "people", name: head(text(q.message), 40), seq: e.sequence, state: "waiting" }, at);
        return { status: "waiting_input", questions: [...s.questions, q] };
      }
      case "task.messaged": {
        const id = e.data.input_id;
        if (!id) return undefined;
        this.end(`ask ${id}`, at, "completed");
        return { status: "running", questions: change(id, { state: "answered", answer: e.data.message, by: e.data.from ?? "" }) };
      }
      case "task.ask_expired":
        this.end(`ask ${e.data.input_id}`, at, "cancelled");
        return { status: "running", questions: change(e.data.input_id, { state: "expired" }) };
    }
    return undefined;
  }

  private called(e: CanonicalEvent, at: number): Partial<TaskState> | undefined {
    const s = this.state;
    if (e.type === "call.started") {
      const d = e.data;
      const c: TaskCall = {
        id: d.call_id,
        tool: d.tool,
        provider: d.server_name || d.server,
        status: "running",
        error: "",
        ms: undefined,
        seq: e.sequence,
      };
      this.begin({ id: `call ${c.id}`, kind: "tool", name: c.tool, seq: e.sequence, state: "running" }, at);
      return { calls: [...s.calls, c] };
    }
    if (e.type !== "call.finished") return undefined;
    const d = e.data;
    const status = d.status === "success" ? "completed" : d.status === "unknown" ? "unknown" : "failed";
    this.end(`call ${d.call_id}`, at, status);
    return { calls: s.calls.map((c) => (c.id === d.call_id ? { ...c, status, error: d.error ?? "", ms: d.duration_ms } : c)) };
  }

  private begin(b: Omit<Bar, "from" | "to" | "run">, at: number): void {
    this.all = [...this.all, { ...b, run: "", from: at, to: undefined }];
  }

  /** Ends the bars with the id, or whose id begins with the word. */
  private end(id: string, at: number, state: BarState): void {
    const over = (b: Bar) => b.to === undefined && (b.id === id || b.id.startsWith(`${id} `));
    this.all = this.all.map((b) => (over(b) ? { ...b, to: at, state, end: this.seq } : b));
  }
}

function ended(status: string): BarState {
  return status === "completed" ? "completed" : status === "cancelled" ? "cancelled" : "failed";
}

function text(v: unknown): string {
  if (typeof v === "string") return v;
  return v === undefined || v === null ? "" : canonical(v);
}
