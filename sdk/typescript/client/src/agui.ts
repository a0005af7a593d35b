/**
 * An agent of AG-UI front ends whose runs outlive their connections.
 *
 * @packageDocumentation
 */
import { type BaseEvent, HttpAgent, type HttpAgentConfig, type RunAgentInput } from "@ag-ui/client";
import { map, Observable } from "rxjs";
import { parsed, WaggleError } from "./failure.js";
import { baseOf, Http, type Token, uuid } from "./http.js";
import { readStream } from "./log.js";

export { WaggleError } from "./failure.js";
export type { Token } from "./http.js";

/** How the agent is reached. */
export interface WaggleAgentConfig extends Omit<HttpAgentConfig, "url"> {
  /** The address of a gateway, with or without `/agui`; or of several that serve the same threads. */
  url: string | readonly string[];
  /** An API key or a JWT; or what returns one, which is called again when the server no longer takes the last one. */
  token?: Token;
  /** The agent of the swarm, by its name, that answers in place of the model. */
  agent?: string;
  /** The id of a team that answers: all threads are its one conversation. */
  team?: string;
}

/** The configurations of agents, which have keys: no members that an inspector prints. */
const configs = new WeakMap<WaggleAgent, WaggleAgentConfig>();

/** Where an agent's requests go. */
function rootOf({ agent, team }: WaggleAgentConfig): string {
  if (agent !== undefined && team !== undefined) {
    throw new WaggleError("INVALID_FIELD", "agent and team exclude each other: leave one of them out", { field: "agent" });
  }
  if (agent !== undefined) return `/agui/agents/${encodeURIComponent(agent)}`;
  return team === undefined ? "/agui" : `/agui/teams/${encodeURIComponent(team)}`;
}

/** An answer to a question: `approved`, and more members as its `responseSchema` says; or whatever an agent asks for. */
export type InterruptReply = boolean | { approved: boolean; feedback?: string; [member: string]: unknown } | string | number;

interface Frame extends BaseEvent {
  type: BaseEvent["type"];
  messageId?: string;
  toolCallId?: string;
  stepName?: string;
  subagentRunId?: string;
  name?: string;
}

/** Pauses between connections, in milliseconds. */
const pauses = { min: 500, max: 15_000 };

/**
 * An HttpAgent that resumes: a stream that breaks goes on behind its last frame, at any gateway. `abortRun()` only
 * leaves the run, which goes on; `stop()` stops it. `connectAgent()` joins the thread as it is.
 */
export class WaggleAgent extends HttpAgent {
  private http: Http;

  constructor(config: WaggleAgentConfig) {
    const urls = [config.url].flat();
    super({ ...config, url: baseOf(urls[0] as string) + rootOf(config) });
    configs.set(this, config);
    this.http = this.transport();
  }

  private get config(): WaggleAgentConfig {
    return configs.get(this) as WaggleAgentConfig;
  }

  private transport(): Http {
    const fetcher = (input: RequestInfo | URL, init?: RequestInit) => this.fetch(String(input), init as RequestInit);
    return new Http([this.config.url].flat().map(baseOf), this.config.token, fetcher as typeof fetch, pauses);
  }

  override clone(): WaggleAgent {
    const copy = super.clone() as WaggleAgent;
    configs.set(copy, this.config);
    copy.http = copy.transport();
    return copy;
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    const older = (input as { protocolVersion?: string }).protocolVersion === undefined;
    const runId = ownRunId(input);
    const run = `${this.thread(input.threadId)}/runs/${encodeURIComponent(runId)}`;
    const events = this.stream(
      (last) => {
        if (last !== undefined) return { path: `${run}${version(older)}`, headers: { ...this.headers, "Last-Event-ID": last } };
        return { path: rootOf(this.config), method: "POST", body: { ...input, runId }, headers: this.headers };
      },
      `${run}${version(older)}`,
    );
    return runId === input.runId ? events : events.pipe(map((e) => ("runId" in e && e.runId === runId ? { ...e, runId: input.runId } : e)));
  }

  /** Joins the thread: its messages, and the run that is on. A thread that does not exist yet has nothing to show. */
  protected override connect(input: RunAgentInput): Observable<BaseEvent> {
    return this.joining(input.threadId, false);
  }

  private joining(threadId: string, follow: boolean): Observable<BaseEvent> {
    const cold = `${this.thread(threadId)}${version(oldClient(this), follow)}`;
    return this.stream(
      (last) => ({ path: cold, headers: last === undefined ? this.headers : { ...this.headers, "Last-Event-ID": last } }),
      cold,
      true,
      follow,
    );
  }

  private stream(
    request: (last: string | undefined) => { path: string; method?: string; body?: unknown; headers: Record<string, string> },
    cold: string,
    joins = false,
    follow = false,
  ): Observable<BaseEvent> {
    return new Observable((to) => {
      const leave = new AbortController();
      const abort = () => leave.abort(this.abortController.signal.reason);
      if (this.abortController.signal.aborted) abort();
      this.abortController.signal.addEventListener("abort", abort, { once: true });
      void new Stretch(this.http, (e) => to.next(e), follow).read(request, cold, joins, leave.signal).then(
        () => (leave.signal.aborted ? to.error(new DOMException("the program has left the run", "AbortError")) : to.complete()),
        (error) => to.error(error),
      );
      return () => {
        this.abortController.signal.removeEventListener("abort", abort);
        leave.abort();
      };
    });
  }

  /** The events of `connectAgent()`, for programs that hand them on. With `follow` those of all later runs come, too. */
  join(o: { follow?: boolean } = {}): Observable<BaseEvent> {
    return this.joining(this.threadId, o.follow ?? false);
  }

  /** Stops the run that is on, or the one with the id, for all who watch it. */
  async stop(reason?: string, runId?: string): Promise<void> {
    const body = { reason, runId };
    await this.http.request(`${this.thread(this.threadId)}/cancel`, { method: "POST", body, headers: this.headers });
  }

  /**
   * Answers questions, by their ids. While the run is on they are answered in it; after it has ended in questions,
   * another run goes on with the answers, which must be to all of them.
   */
  async answer(replies: Readonly<Record<string, InterruptReply>>): Promise<void> {
    const resume = Object.entries(replies).map(([interruptId, payload]) => ({ interruptId, status: "resolved" as const, payload }));
    if (!this.isRunning) {
      await this.runAgent({ resume } as Parameters<HttpAgent["runAgent"]>[0]);
      return;
    }
    await this.http.request(`${this.thread(this.threadId)}/answers`, {
      method: "POST",
      body: { resume, id: uuid() },
      headers: this.headers,
    });
  }

  private thread(id: string): string {
    return `${rootOf(this.config)}/threads/${encodeURIComponent(id)}`;
  }
}

/**
 * The id of a run at the server. CopilotKit answers questions under the id of the run that asked them, which the server would
 * show again: a run that answers has an id of its own, and the same one if the request is repeated. Another answer to the same
 * question, after one that was refused, is no repeat.
 */
function ownRunId(input: RunAgentInput): string {
  const { resume } = input as { resume?: { interruptId: string }[] };
  return resume?.[0] ? `${input.runId}.${resume[0].interruptId}.${digest(JSON.stringify(resume))}`.slice(-200) : input.runId;
}

/** A few characters that differ where texts do. */
function digest(text: string): string {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) | 0;
  return (sum >>> 0).toString(36);
}

/** Whether the release of the client speaks a protocol before 1.0. */
function oldClient(agent: HttpAgent): boolean {
  return (agent as { maxProtocolVersion?: string }).maxProtocolVersion === undefined;
}

/** Clients before 1.0 are sent what they understand. */
function version(older: boolean, follow = false): string {
  const of = [...(older ? ["version=0", "subagents=1"] : []), ...(follow ? ["follow=1"] : [])];
  return of.length > 0 ? `?${of.join("&")}` : "";
}

/** The frames of one run, or of a thread, for one subscriber, over any number of connections. */
class Stretch {
  private last: string | undefined;
  private began = false;
  private ended = false;
  private readonly open = new Map<string, Frame>();

  constructor(
    private readonly http: Http,
    private readonly next: (e: BaseEvent) => void,
    /** Whether further runs are wanted. */
    private readonly follows: boolean,
  ) {}

  async read(
    request: (last: string | undefined) => { path: string; headers: Record<string, string> },
    cold: string,
    joins: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await this.follow(request, signal);
    } catch (error) {
      const status = error instanceof WaggleError ? error.status : 0;
      if (joins && status === 404) return;
      if (this.last === undefined || (status !== 404 && status !== 410)) throw error;
      this.last = undefined; // what followed is gone: join as a newcomer
      this.close();
      await this.follow((last) => ({ path: cold, headers: last === undefined ? {} : { "Last-Event-ID": last } }), signal);
    }
  }

  private async follow(
    request: (last: string | undefined) => { path: string; headers: Record<string, string> },
    signal: AbortSignal,
  ): Promise<void> {
    const leave = new AbortController();
    const stop = () => leave.abort();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    // A thread on which nothing is on ends its answer, and says so with a comment alone.
    const again = () => {
      if (this.last === undefined) this.close(); // it broke in the prelude, which comes as a whole again
      return request(this.last);
    };
    const reading = { request: again, take: (m: { data?: string }) => m.data !== undefined };
    try {
      for await (const m of readStream(this.http, reading, { signal: leave.signal })) {
        if (m.id !== undefined) this.last = m.id;
        this.take(parsed<Frame>(m.data as string, "an event of the stream"));
        if (this.ended) return;
      }
    } finally {
      signal.removeEventListener("abort", stop);
      leave.abort();
    }
  }

  private take(f: Frame): void {
    if (f.type === "RUN_STARTED" && this.began) return;
    if (f.type === "RUN_STARTED") this.began = true;
    const [kind, phase] = boundary(f.type);
    const key = `${kind} ${f.messageId ?? f.toolCallId ?? f.stepName ?? f.subagentRunId}`;
    if (phase === "begin") this.open.set(key, f);
    if (phase === "end") this.open.delete(key);
    const over = f.type === "RUN_FINISHED" || f.type === "RUN_ERROR";
    if (over && this.follows) this.began = false;
    this.ended = over && !this.follows;
    this.next(f);
  }

  /** Ends what is open, the innermost first: a newcomer is told of it anew. */
  private close(): void {
    for (const f of [...this.open.values()].reverse()) {
      const end = ends[f.type];
      if (!end) continue;
      const { messageId, toolCallId, stepName, subagentRunId } = f;
      this.next({
        type: end,
        ...(messageId && { messageId }),
        ...(toolCallId && { toolCallId }),
        ...(stepName && { stepName }),
        ...(subagentRunId && { subagentRunId }),
      } as unknown as BaseEvent);
    }
    this.open.clear();
  }
}

const ends: Record<string, string> = {
  TEXT_MESSAGE_START: "TEXT_MESSAGE_END",
  REASONING_START: "REASONING_END",
  REASONING_MESSAGE_START: "REASONING_MESSAGE_END",
  TOOL_CALL_START: "TOOL_CALL_END",
  STEP_STARTED: "STEP_FINISHED",
  SUBAGENT_STARTED: "SUBAGENT_FINISHED",
};

function boundary(type: string): [string, "begin" | "end" | undefined] {
  if (ends[type]) return [ends[type], "begin"];
  if (type === "SUBAGENT_ERROR") return ["SUBAGENT_FINISHED", "end"];
  return [type, Object.values(ends).includes(type) ? "end" : undefined];
}
