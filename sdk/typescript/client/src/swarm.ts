/**
 * Agents and tool services of the swarm, for Node.
 *
 * @packageDocumentation
 */
import { type BackoffOptions, defaultBackoff } from "./backoff.js";
import { timeLimit } from "./deadline.js";
import { WaggleError } from "./failure.js";
import { baseOf, Http, type Token } from "./http.js";
import { type Frame, Link } from "./link.js";
import { type CheckedTool, checkedTool, type OutputOf, type StandardSchema } from "./schema.js";
import type { SocketMaker } from "./socket.js";

export { WaggleError } from "./failure.js";
export type { CheckedTool, OutputOf, StandardSchema } from "./schema.js";

/** Where agents and services connect. */
export interface ServeOptions {
  /** The address of a gateway, or of several. */
  url: string | readonly string[];
  /** An API key or a JWT; or what returns one. */
  token?: Token;
  /** Default: the global one, else that of the package ws. */
  // biome-ignore lint/suspicious/noExplicitAny: the WebSockets of browsers and of ws have types of their own
  WebSocket?: any;
  /** Ends the work: what is unfinished goes to others. */
  signal?: AbortSignal;
  backoff?: Partial<BackoffOptions>;
  /** Is told of errors that belong to no task and no call. */
  onError?: (error: WaggleError) => void;
}

/** An agent, a service: what it is, and how it connects. */
export interface Servable {
  /** Connects and works until the signal is aborted or `stop()` is called. It reconnects by itself. */
  serve(o: ServeOptions): Promise<Serving>;
}

/** An agent or a service at work. */
export interface Serving {
  readonly id: string;
  /** Says goodbye; what is unfinished goes to others at once. */
  stop(): Promise<void>;
  /** Ends the present connection as a bad line does. */
  cut(): void;
  /** Resolves when the work was stopped; rejects when the server does not want it. */
  readonly done: Promise<void>;
}

/** Types of notifications. */
export type NotificationType = "progress" | "info" | "warning" | "error" | "debug" | "step" | "status";

/** A task that an agent does. */
export interface AgentTask<Data = unknown> {
  readonly id: string;
  readonly type: string;
  readonly data: Data;
  /** The data as a text: itself, or its `description`, `text` or `content`. A step of a plan has a description, a message of a chat or a team a content. */
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Is aborted when the task is cancelled, its time is over, or another agent has it. */
  readonly signal: AbortSignal;
  /** Sends the client a notification. */
  notify(message: string, o?: { type?: NotificationType; data?: unknown }): Promise<void>;
  /** Tells how far the task is, from 0 to 1. */
  progress(part: number, message?: string): Promise<void>;
  /** Asks the client, and returns the answer. Rejects with `INPUT_EXPIRED` without one in time. */
  ask(message: unknown, o?: { options?: string[]; timeoutMs?: number }): Promise<unknown>;
  /** Runs a tool of a service and returns its result. */
  callService(service: string, tool: string, params?: unknown, o?: { timeoutMs?: number }): Promise<unknown>;
  /** Runs a tool of an MCP server and returns its result. */
  callMcp(server: string, tool: string, parameters?: unknown, o?: { timeoutMs?: number }): Promise<unknown>;
}

/** An agent of the swarm. */
export interface AgentDefinition<Data = unknown> {
  /** Several agents of one name share its tasks. */
  name: string;
  /** The same after a restart; default: a random one. */
  id?: string;
  capabilities?: string[];
  description?: string;
  /** Tasks at once; more of them wait here. Default: 8. */
  concurrency?: number;
  /** Does a task and returns its result. What it throws fails the task. */
  run(task: AgentTask<Data>): unknown | Promise<unknown>;
}

/** A tool of a service. */
export interface ToolDefinition<Params = unknown> {
  /** By which it is called. */
  id: string;
  name?: string;
  description?: string;
  /** JSON Schemas: the server holds calls and results to them. */
  inputSchema?: object;
  outputSchema?: object;
  /** Running it twice does no harm. */
  idempotent?: boolean;
  /** Runs it and returns its result. What it throws fails the call. */
  run(params: Params, call: ToolCall): unknown | Promise<unknown>;
}

/** A call of a tool. */
export interface ToolCall {
  readonly id: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Is aborted when the time of the call is over or the connection is lost. */
  readonly signal: AbortSignal;
  /** Tells the agent and its client how the call is. */
  notify(message: string, o?: { type?: NotificationType; data?: unknown }): Promise<void>;
}

/** A service with tools. */
export interface ServiceDefinition {
  name: string;
  /** Replicas of one id share its calls; default: made of the name. */
  id?: string;
  capabilities?: string[];
  description?: string;
  // biome-ignore lint/suspicious/noExplicitAny: each tool has parameters of its own
  tools: ToolDefinition<any>[];
  /** Calls at once; more of them wait here. Default: 8. */
  concurrency?: number;
}

/** Describes an agent. */
export function defineAgent<Data = unknown>(d: AgentDefinition<Data>): Servable & { definition: AgentDefinition<Data> } {
  return { definition: d, serve: (o) => new AgentPeer(d as AgentDefinition).start(o) };
}

/** Describes a tool, for `defineService`. A schema in `input`, as of zod, types the parameters of `run` and checks them before it. */
export function defineTool<S extends StandardSchema>(d: CheckedTool<S>): ToolDefinition<OutputOf<S>>;
export function defineTool<Params = unknown>(d: ToolDefinition<Params>): ToolDefinition<Params>;
export function defineTool(d: ToolDefinition | CheckedTool<StandardSchema>): ToolDefinition {
  return "input" in d ? checkedTool(d) : d;
}

/** Describes a service with its tools. */
export function defineService(d: ServiceDefinition): Servable & { definition: ServiceDefinition } {
  return { definition: d, serve: (o) => new ServicePeer(d).start(o) };
}

/** @internal The WebSocket of the package ws, for Node 20. */
export async function webSocketOf(load: () => Promise<{ WebSocket: unknown }> = () => import("ws")): Promise<unknown> {
  try {
    return (await load()).WebSocket;
  } catch (cause) {
    const message = "this version of Node has no WebSocket: install the package ws (npm i ws), or use Node 22 or newer";
    throw new WaggleError("NO_WEBSOCKET", message, { cause, retryable: false });
  }
}

const newId = () => crypto.randomUUID();
const stamp = () => new Date().toISOString();

/** What agents and services have in common: registration, requests, and a bound of what runs at once. */
abstract class Peer {
  protected link!: Link;
  protected readonly work = new Map<string, AbortController>();
  private readonly waiting: (() => void)[] = [];
  private running = 0;
  private registration = "";
  private readonly ended = new AbortController();
  private onError: (e: WaggleError) => void = () => {};
  abstract id: string;

  constructor(
    private readonly role: "agent" | "service",
    private readonly concurrency: number,
  ) {}

  protected abstract greeting(): Frame;
  protected abstract take(f: Frame): void;
  protected lost(): void {}
  protected greeted(_: Frame): void {}

  async start(o: ServeOptions): Promise<Serving> {
    const maker = (o.WebSocket ?? globalThis.WebSocket ?? (await webSocketOf())) as SocketMaker;
    const urls = [o.url].flat().map(baseOf);
    this.onError = o.onError ?? (() => {});
    const http = new Http(urls, o.token, globalThis.fetch, { ...defaultBackoff, ...o.backoff }, maker);
    let ready: () => void = () => {};
    const first = new Promise<void>((go) => (ready = go));
    this.link = new Link(http, {
      path: () => `/ws/asp/${this.role}`,
      begin: (send) => {
        this.registration = newId();
        send({ id: this.registration, type: `${this.role}.register`, timestamp: stamp(), content: this.greeting() });
      },
      ping: () => ({ id: newId(), type: "ping", content: {} }),
      lost: () => this.lost(),
      take: (f) => {
        if (f.type === `${this.role}.registered`) {
          this.greeted(f);
          ready();
          return "ready";
        }
        if (f.type === "error") this.failed(f);
        else this.take(f);
        return undefined;
      },
    });
    const done = new Promise<void>((ok, no) => this.link.onEnd((e) => (this.ended.signal.aborted ? ok() : no(e))));
    done.catch(() => {});
    o.signal?.addEventListener("abort", () => void this.stop(), { once: true });
    await Promise.race([first, done]);
    return { id: this.id, stop: () => this.stop(), cut: () => this.link.cut(), done };
  }

  private failed(f: Frame): void {
    const e = errorOf(f);
    if (f.requestId === this.registration && !e.retryable) this.link.fail(e);
    else this.onError(e);
  }

  private async stop(): Promise<void> {
    if (this.ended.signal.aborted) return;
    this.ended.abort();
    for (const c of this.work.values()) c.abort(new WaggleError("CLOSED", "the program stops"));
    await Promise.race([this.call(`${this.role}.unregister`, {}).catch(() => {}), new Promise((go) => setTimeout(go, 2000))]);
    this.link.close();
  }

  /** Whether the peer has said goodbye. */
  protected get stopping(): boolean {
    return this.ended.signal.aborted;
  }

  /** Sends a request until it is answered, and returns the content of the answer. */
  protected call(type: string, content: Frame): Promise<Frame> {
    const id = newId();
    return new Promise((done, fail) => {
      this.link.send({ id, type, timestamp: stamp(), content }, (f) => {
        if (f.requestId !== id) return false;
        if (f.type === "error") fail(errorOf(f));
        else done(f.content ?? {});
        return true;
      });
    });
  }

  /** Sends a frame that has no answer until the server is known to have it: it answers a ping behind it. */
  protected deliver(type: string, content: Frame): Promise<void> {
    const id = newId();
    const ping = newId();
    return new Promise((done) => {
      const settled = (f: Frame) => {
        if (f.requestId !== ping) return false;
        done();
        return true;
      };
      this.link.send({ id, type, timestamp: stamp(), content }, settled);
      this.link.send({ id: ping, type: "ping", content: {} }, settled);
    });
  }

  /** Runs f when there is room for it, and no longer than until the deadline of the metadata. */
  protected async limited(id: string, metadata: Frame | undefined, f: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const abort = new AbortController();
    this.work.set(id, abort);
    const limit = timeLimit(metadata);
    const timer =
      limit !== undefined && limit < 2 ** 31
        ? setTimeout(() => abort.abort(new WaggleError("TASK_TIMEOUT", "the time is over")), limit)
        : undefined;
    try {
      while (this.running >= this.concurrency) await new Promise<void>((go) => this.waiting.push(go));
      this.running++;
      try {
        if (!abort.signal.aborted) await f(abort.signal);
      } finally {
        this.running--;
        this.waiting.shift()?.();
      }
    } finally {
      clearTimeout(timer);
      if (this.work.get(id) === abort) this.work.delete(id);
    }
  }
}

class AgentPeer extends Peer {
  readonly id: string;

  constructor(private readonly d: AgentDefinition) {
    super("agent", d.concurrency ?? 8);
    this.id = d.id ?? `agent-${newId()}`;
  }

  protected override greeting(): Frame {
    const { name, capabilities = [], description } = this.d;
    return { id: this.id, agentId: this.id, name, capabilities, description, status: "active", tasks: [...this.work.keys()].slice(0, 100) };
  }

  protected override take(f: Frame): void {
    if (f.type === "task.execute") {
      const id = String(f.content.taskId);
      if (this.stopping || this.work.has(id)) return;
      void this.limited(id, f.content.metadata, (signal) => this.execute(id, f.content, signal));
    } else if (f.type === "task.cancel") {
      this.work.get(String(f.content.taskId))?.abort(new WaggleError("CANCELLED", "the server has cancelled the task"));
    }
  }

  private async execute(id: string, content: Frame, signal: AbortSignal): Promise<void> {
    const base = { taskId: id, agentId: this.id };
    try {
      const result = await this.d.run(this.task(id, content, signal));
      if (!signal.aborted) await this.deliver("agent.task.result", { ...base, result: result === undefined ? null : result });
    } catch (e) {
      if (!signal.aborted) await this.deliver("task.error", { ...base, ...failure(e) });
    }
  }

  private task(id: string, content: Frame, signal: AbortSignal): AgentTask {
    const base = { taskId: id, agentId: this.id };
    const data = content.input ?? content.data;
    const notify: AgentTask["notify"] = async (message, o = {}) => {
      await this.call("task.notification", { ...base, notificationType: o.type ?? "info", message, data: o.data });
    };
    const outcome = async (type: string, params: Frame) => {
      const r = await this.call(type, { ...base, ...params });
      if (r.status && r.status !== "success" && r.status !== "completed")
        throw new WaggleError(r.code ?? "TOOL_FAILED", String(r.error ?? r.status), { detail: r });
      return r.result;
    };
    return {
      id,
      type: content.type ?? content.taskType ?? "",
      data,
      text: textOf(data),
      metadata: content.metadata ?? {},
      signal,
      notify,
      progress: (part, message = "") => notify(message, { type: "progress", data: { progress: part * 100 } }),
      ask: async (message, o = {}) =>
        (await this.call("task.requestmessage", { ...base, message, options: o.options, timeout: o.timeoutMs ?? 30_000 })).message,
      callService: (service, tool, params = {}, o = {}) =>
        outcome("service.task.execute", { serviceId: service, toolId: tool, params, timeout: o.timeoutMs ?? 60_000 }),
      callMcp: (server, tool, parameters = {}, o = {}) =>
        outcome("mcp.tool.execute", { serverId: server, toolName: tool, parameters, timeout: o.timeoutMs ?? 60_000 }),
    };
  }
}

class ServicePeer extends Peer {
  id: string;

  constructor(private readonly d: ServiceDefinition) {
    super("service", d.concurrency ?? 8);
    this.id = d.id ?? "";
  }

  protected override greeting(): Frame {
    const { name, capabilities = [], description, tools } = this.d;
    const own = this.id ? { id: this.id, serviceId: this.id } : {};
    const offered = tools.map(({ run: _, ...t }) => t);
    return { ...own, name, capabilities, description, status: "active", tools: offered };
  }

  protected override greeted(f: Frame): void {
    this.id = f.content?.id ?? this.id;
  }

  /** The server takes the loss of the connection for the end of its calls. */
  protected override lost(): void {
    for (const c of this.work.values()) c.abort(new WaggleError("INTERRUPTED", "the connection of the call is lost"));
  }

  protected override take(f: Frame): void {
    if (f.type !== "service.task.execute" || this.stopping || this.work.has(f.id)) return;
    void this.limited(f.id, f.content.metadata, (signal) => this.execute(f.id, f.content, signal));
  }

  private async execute(id: string, content: Frame, signal: AbortSignal): Promise<void> {
    const base = { taskId: id, serviceId: this.id };
    const wanted = content.toolId || content.functionName;
    const tool = this.d.tools.find((t) => t.id === wanted);
    const call: ToolCall = {
      id,
      metadata: content.metadata ?? {},
      signal,
      notify: async (message, o = {}) => {
        await this.call("service.task.notification", {
          ...base,
          notification: { type: o.type ?? "info", message, data: o.data, timestamp: stamp() },
        });
      },
    };
    try {
      if (!tool) throw new WaggleError("TOOL_NOT_FOUND", `the service has no tool "${wanted}"`);
      const result = await tool.run(content.params ?? {}, call);
      this.report(signal, "service.task.result", { ...base, result: result === undefined ? null : result });
    } catch (e) {
      this.report(signal, "service.error", { ...base, ...failure(e) });
    }
  }

  /** The outcome counts on the connection of the call alone. */
  private report(signal: AbortSignal, type: string, content: Frame): void {
    if (!signal.aborted) this.link.tell({ id: newId(), type, timestamp: stamp(), content });
  }
}

function errorOf(f: Frame): WaggleError {
  return new WaggleError(f.content?.code ?? "REFUSED", String(f.content?.error ?? "the server refused it"), { detail: f });
}

function failure(e: unknown): Frame {
  const message = e instanceof Error ? e.message : String(e);
  return e instanceof WaggleError ? { error: message, code: e.code, details: e.detail } : { error: message };
}

function textOf(data: unknown): string {
  if (typeof data === "string") return data;
  const d = (data ?? {}) as { description?: unknown; text?: unknown; content?: unknown };
  for (const t of [d.description, d.text, d.content]) if (typeof t === "string") return t;
  return data === undefined || data === null ? "" : JSON.stringify(data);
}
