/**
 * CopilotKit's runtime with threads that live in Waggle.
 *
 * @packageDocumentation
 */
import { type BaseEvent, EventType } from "@ag-ui/client";
import {
  AgentRunner,
  type AgentRunnerConnectRequest,
  type AgentRunnerIsRunningRequest,
  type AgentRunnerRunRequest,
  type AgentRunnerStopRequest,
} from "@copilotkit/runtime/v2";
import { WaggleClient, WaggleError } from "@waggle-dev/client";
import { WaggleAgent, type WaggleAgentConfig } from "@waggle-dev/client/agui";
import { catchError, of, throwError } from "rxjs";
import { followHeader } from "./follow.js";

/** Where the threads are. */
export type WaggleRunnerConfig = Pick<WaggleAgentConfig, "url" | "token" | "headers" | "fetch" | "agent" | "team">;

type Events = ReturnType<AgentRunner["run"]>;

/**
 * An AgentRunner that keeps nothing itself: threads and their runs are those of Waggle. They go on when the runtime
 * is restarted, any replica of the runtime shows them, and a request that comes twice runs nothing twice.
 */
export class WaggleRunner extends AgentRunner {
  private readonly client: WaggleClient;

  readonly #config: WaggleRunnerConfig;

  constructor(config: WaggleRunnerConfig) {
    super();
    this.#config = config;
    const { url, token } = config;
    this.client = new WaggleClient({ url, ...(token === undefined ? {} : { token }) });
  }

  /** Begins a run, or shows it if it is on already. Its reader may leave: the run goes on. */
  override run(request: AgentRunnerRunRequest): Events {
    const given = request.agent as unknown;
    const agent = given instanceof WaggleAgent ? given.clone() : this.agent(request.threadId);
    agent.threadId = request.threadId;
    return told(agent.run(request.input as Parameters<WaggleAgent["run"]>[0]));
  }

  /** Shows a thread as it is, with the run that is on; for a page that follows the thread (`useFollow`), all later runs, too. */
  override connect(request: AgentRunnerConnectRequest): Events {
    const agent = this.agent(request.threadId);
    const { [followHeader]: follow, ...headers } = request.headers ?? {};
    agent.headers = { ...agent.headers, ...headers };
    return told(agent.join({ follow: follow !== undefined }));
  }

  /** Whether a run of the thread is on. */
  override async isRunning(request: AgentRunnerIsRunningRequest): Promise<boolean> {
    try {
      const { team } = this.#config;
      if (team !== undefined) {
        const view = await this.client.call<{ status: string }>("GET", `/api/v1/teams/${encodeURIComponent(team)}`);
        return view.status === "RUNNING";
      }
      const detail = await this.client.call<{ runs: { status: string }[] }>(
        "GET",
        `/api/v1/sessions/${encodeURIComponent(request.threadId)}`,
      );
      return detail.runs.some((r) => r.status === "running" || r.status === "queued" || r.status === "waiting");
    } catch (error) {
      if (error instanceof WaggleError && error.status === 404) return false;
      throw error;
    }
  }

  /** Stops the run that is on, or the given one, for all who watch it. */
  override async stop(request: AgentRunnerStopRequest): Promise<boolean> {
    try {
      await this.agent(request.threadId).stop(undefined, request.runId);
      return true;
    } catch (error) {
      if (error instanceof WaggleError && (error.status === 404 || error.status === 409)) return false;
      throw error;
    }
  }

  private agent(threadId: string): WaggleAgent {
    return new WaggleAgent({ ...this.#config, threadId });
  }
}

/** CopilotKit's runtime ends a stream that fails without a word: an event tells the page what the server has refused. */
function told(events: ReturnType<WaggleAgent["run"]>): Events {
  const out = events.pipe(
    catchError((error: Error) => {
      if (error.name === "AbortError") return throwError(() => error);
      const code = error instanceof WaggleError ? { code: error.code } : {};
      return of({ type: EventType.RUN_ERROR, message: error.message, ...code } as BaseEvent);
    }),
  );
  return out as unknown as Events;
}
