import { signal } from "@preact/signals";
import {
  type CallView,
  type CanonicalEvent,
  type LogPage,
  type NewToolCall,
  type TaskName,
  type TaskSummary,
  WaggleError,
} from "@waggle-dev/client";
import { reason, refusedLogin } from "../app.ts";
import { newId, persist } from "./act.ts";
import { List } from "./lists.ts";

const part = encodeURIComponent;

/** Tasks, the newest change first. */
export function taskList(): List<TaskSummary> {
  return new List(
    "tasks",
    "/api/v1/tasks?limit=50",
    (x) => x.task_id,
    (a, b) => (a.updated_at < b.updated_at ? 1 : -1),
  );
}

/** Cancels a task. One that has ended meanwhile is not harmed. */
export async function cancelTask(id: string): Promise<void> {
  try {
    await persist("POST", `/api/v1/tasks/${part(id)}/cancel`);
  } catch (error) {
    if (!(error instanceof WaggleError) || error.code !== "TASK_FINISHED") throw error;
  }
}

/** Submits a task again, and returns the id of the new one once it has a log. */
export async function retryTask(id: string): Promise<string> {
  const { task_id } = await persist<TaskName>("POST", `/api/v1/tasks/${part(id)}/retry`, { id: newId() });
  for (let looks = 0; ; looks++) {
    try {
      await persist("GET", `/api/v1/logs/task/${part(task_id)}/head`);
      return task_id;
    } catch (error) {
      if (!(error instanceof WaggleError) || error.status !== 404 || looks === mostLooks) throw error;
      await new Promise((go) => setTimeout(go, 100));
    }
  }
}

/** Looks for a task that a service has taken and not begun yet. */
const mostLooks = 300;

/** Seconds for which one request waits for the outcome of a call. */
const wait = 20;
/** Between two looks into the log of a call. */
const look = 1000;

/** Why a call was refused before its tool began, and at which argument. */
export interface Refusal {
  text: string;
  at: string | undefined;
}

/** A call of a tool, as it is now. */
export class Call {
  readonly view = signal<Pick<CallView, "call_id" | "status" | "result" | "code" | "error" | "duration_ms"> | undefined>(undefined);
  readonly events = signal<readonly CanonicalEvent[]>([]);
  readonly refused = signal<Refusal | undefined>(undefined);
  readonly busy = signal(false);
  private ended = false;
  /** The looks into the log, one after the other. */
  private looks: Promise<unknown> = Promise.resolve();

  /** Calls the tool and waits for the outcome: repeats of the request join the call. `named` is told the call's id. */
  async start(provider: string, tool: string, c: NewToolCall, named: (id: string) => void): Promise<void> {
    this.busy.value = true;
    this.refused.value = undefined;
    this.view.value = undefined;
    this.events.value = [];
    const body = { ...c, id: newId() };
    const path = `/api/v1/tools/${part(provider)}/${part(tool)}/call`;
    try {
      for (let seconds = 1; !this.ended; seconds = wait) {
        const view = await persist<CallView>("POST", `${path}?wait=${seconds}`, body);
        if (this.ended) return;
        this.view.value = view;
        if (seconds === 1) named(view.call_id);
        if (view.status !== "queued" && view.status !== "running") {
          await this.read(view.call_id);
          return;
        }
        if (seconds === 1) void this.follow(view.call_id).catch(() => {}); // the request says what is wrong
      }
    } catch (error) {
      const field = error instanceof WaggleError ? error.field : undefined;
      const at = field?.startsWith("arguments") ? field.slice("arguments".length) : undefined;
      if (!this.ended) this.refused.value = { text: reason(error), at };
    } finally {
      this.busy.value = false;
    }
  }

  /** Shows a call that was made before, and its outcome when it has one. */
  async show(id: string): Promise<void> {
    try {
      await this.follow(id);
    } catch (error) {
      if (!this.ended && !refusedLogin(error)) this.refused.value = { text: reason(error), at: undefined };
    }
  }

  /** Reads the log of the call until the call is over. */
  private async follow(id: string): Promise<void> {
    while (!this.ended && !(await this.read(id))) await new Promise((go) => setTimeout(go, look));
  }

  /** Reads what is new in the log of the call. Reports whether the call is over. */
  private read(id: string): Promise<boolean> {
    const next = this.looks.then(() => this.news(id));
    this.looks = next.catch(() => {});
    return next;
  }

  private async news(id: string): Promise<boolean> {
    for (let more = true; more && !this.ended; ) {
      const after = this.events.value.at(-1)?.sequence ?? 0;
      const page = await persist<LogPage>("GET", `/api/v1/logs/call/${part(id)}/events?after=${after}`).catch((error: unknown) => {
        if (error instanceof WaggleError && error.status === 404 && this.busy.value) return undefined; // no worker has it yet
        throw error;
      });
      if (!page || this.ended) return false;
      const events = page.events as unknown as CanonicalEvent[];
      if (events.length > 0) this.events.value = [...this.events.value, ...events];
      more = page.more;
    }
    const last = this.events.value.at(-1);
    if (last?.type === "call.finished") {
      const { status, result, code, error, duration_ms } = last.data;
      if (this.view.value === undefined || this.view.value.result === undefined)
        this.view.value = { call_id: id, status, result, code: code ?? "", error: error ?? "", duration_ms };
      return true;
    }
    this.view.value ??= { call_id: id, status: "running", duration_ms: 0 };
    return false;
  }

  close(): void {
    this.ended = true;
  }
}
