import { closedError, WaggleError } from "./failure.js";
import type { TaskDetail, TaskName, TaskSummary } from "./generated/api.js";
import type { CanonicalEvent } from "./generated/events.js";
import { bounded, type CallOptions, type Http, until } from "./http.js";
import { Watched } from "./hub.js";
import type { Question } from "./questions.js";

/** Work for an agent of the swarm: the one with the id, else one with the name, else any that has all capabilities. */
export interface NewTask {
  agentId?: string;
  agent?: string;
  capabilities?: string[];
  /** For the agent: anything but null. */
  data: unknown;
  type?: string;
  /** How long it may wait for an agent. */
  queueTimeoutMs?: number;
  /** Of the whole task. */
  timeoutMs?: number;
  /** Of the request: sent again with it, the task is made once. */
  id?: string;
}

/** What came of a task. */
export interface TaskResult {
  status: string;
  result: unknown;
}

/** A task of the swarm: its log, and what can be said to it. */
export class Task extends Watched {
  private readonly outcome: Promise<TaskResult>;
  private settle: (r: TaskResult) => void = () => {};
  private fail: (e: unknown) => void = () => {};

  /** For `WaggleClient`. */
  constructor(http: Http, id: string, after: number, newId: () => string) {
    super(http, "task", id, after, newId);
    this.outcome = new Promise((ok, no) => {
      this.settle = ok;
      this.fail = no;
    });
    this.outcome.catch(() => {});
  }

  /** The task with its newest events. */
  show(o: CallOptions = {}): Promise<TaskDetail> {
    const signal = until(this.signal, o);
    return this.http.persist(() => this.http.json<TaskDetail>(this.path, { signal }), signal);
  }

  /** What the agent has made of it. Rejects if it failed or was cancelled. The task continues after a time-out. */
  result(o: CallOptions = {}): Promise<TaskResult> {
    this.read();
    return bounded(this.outcome, o);
  }

  /** Stops it. */
  async cancel(reason?: string, o: CallOptions = {}): Promise<void> {
    const signal = until(this.signal, o);
    const body = reason === undefined ? {} : { body: { reason } };
    await this.http.persist(() => this.http.request(`${this.path}/cancel`, { method: "POST", signal, ...body }), signal);
  }

  /** Submits it again as a new task, after it has failed or was cancelled, and returns the id of that one. With the same id once. */
  async retry(id: string = this.newId(), o: CallOptions = {}): Promise<string> {
    const signal = until(this.signal, o);
    const r = { method: "POST", signal, body: { id } };
    return (await this.http.persist(() => this.http.json<TaskName>(`${this.path}/retry`, r), signal)).task_id;
  }

  /** Tells its agent something; answers its question, if it has one. */
  async message(message: unknown, o: CallOptions = {}): Promise<void> {
    const signal = until(this.signal, o);
    const r = { method: "POST", signal, body: { id: this.newId(), message } };
    await this.http.persist(() => this.http.request(`${this.path}/messages`, r), signal);
  }

  /** Answers a question of its agent. */
  answer(question: Question | string, message: unknown, o: CallOptions = {}): Promise<void> {
    return this.reply(question, { decision: "answer", message }, until(this.signal, o));
  }

  protected override take(e: CanonicalEvent): void {
    if (e.type !== "task.finished") return;
    if (e.data.status === "completed") this.settle({ status: e.data.status, result: e.data.result });
    else this.fail(new WaggleError(e.data.code || "TASK_FAILED", e.data.error || `the task is ${e.data.status}`, { detail: e.data }));
  }

  protected override end(error: unknown): void {
    this.fail(error ?? closedError());
  }
}

/** The tasks of the swarm. */
export class Tasks {
  /** For `WaggleClient`. */
  constructor(
    private readonly http: Http,
    private readonly signal: AbortSignal,
    private readonly task: (id: string) => Task,
    private readonly newId: () => string,
    /** Pages of tasks, the newest change first. */
    readonly list: (o?: { limit?: number; before?: string } & CallOptions) => AsyncGenerator<TaskSummary, void, undefined>,
  ) {}

  /** Gives a task. It is given once, however often the request is sent. */
  async create(t: NewTask, o: CallOptions = {}): Promise<Task> {
    const signal = until(this.signal, o);
    const { id = this.newId(), agentId, agent, capabilities, type, data, queueTimeoutMs, timeoutMs } = t;
    const body = {
      id,
      agent_id: agentId,
      agent_name: agent,
      capabilities,
      task_type: type,
      data,
      queue_ms: queueTimeoutMs,
      timeout_ms: timeoutMs,
    };
    const r = { method: "POST", body, signal };
    return this.task((await this.http.persist(() => this.http.json<TaskName>("/api/v1/tasks", r), signal)).task_id);
  }
}
