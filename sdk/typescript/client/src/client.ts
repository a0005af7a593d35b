import { type BackoffOptions, defaultBackoff } from "./backoff.js";
import { closedError } from "./failure.js";
import type {
  CallView,
  ImportReply,
  Me,
  NewToolCall,
  Participant,
  Quota,
  QuotaList,
  SessionName,
  SessionSummary,
  Status,
  TaskSummary,
  TeamView,
} from "./generated/api.js";
import type { CanonicalEvent } from "./generated/events.js";
import { baseOf, type CallOptions, Http, type Logger, type Token, until, uuid } from "./http.js";
import { Inbox } from "./inbox.js";
import { type LiveOptions, live, type TopicMessage, type TopicOptions, topics } from "./live.js";
import { Log } from "./logs.js";
import { type ListOptions, pages } from "./pages.js";
import { type SendOptions, Session } from "./session.js";
import type { SocketMaker } from "./socket.js";
import { Task, Tasks } from "./tasks.js";
import { Team, Teams } from "./teams.js";

/** Where the gateways are and how they are reached. */
export interface WaggleOptions {
  /** The address of a gateway (http://, https://, ws://, wss://), or of several that serve the same logs. */
  url: string | readonly string[];
  /** An API key or a JWT; or what returns one, which is called again when the server no longer takes the last one. */
  token?: Token;
  /** Default: the global one. */
  fetch?: typeof fetch;
  /** For streams that a proxy holds back over HTTP. Default: the global one. Node 20 has none: pass that of the package ws. */
  // biome-ignore lint/suspicious/noExplicitAny: the WebSockets of browsers and of ws have types of their own
  WebSocket?: any;
  /** Is told of repeated requests, reconnects and failures of tools, never of tokens: `console`, or an object with its `info` and `warn`. */
  logger?: Logger;
  /** The pauses between connections. */
  backoff?: Partial<BackoffOptions>;
  /** Makes ids of messages. */
  newId?: () => string;
}

/** Which sessions are listed. */
export interface SessionFilter extends ListOptions {
  status?: "open" | "closed";
  state?: "idle" | "running" | "waiting" | "completed" | "partly" | "failed" | "cancelled" | "unknown_outcome";
  principal?: string;
  dialect?: string;
  since?: string;
  until?: string;
  /** A part of the first question. */
  q?: string;
}

/** Which agents, services or MCP servers are listed. */
export interface SwarmFilter extends ListOptions {
  status?: string;
  /** One that they have. */
  capability?: string;
  /** A part of the name. */
  name?: string;
  /** The beginning of the name. */
  prefix?: string;
  type?: string;
}

/** The part of `WaggleClient` for programs that make requests and read streams on their own. */
export class WaggleApi {
  protected readonly http: Http;
  protected readonly leave = new AbortController();

  constructor(o: WaggleOptions) {
    const urls = [o.url].flat().map(baseOf);
    if (urls.length === 0) baseOf("");
    const fetcher = o.fetch ?? ((input: RequestInfo | URL, init?: RequestInit) => globalThis.fetch(input, init));
    const maker = (o.WebSocket ?? globalThis.WebSocket) as SocketMaker | undefined;
    this.http = new Http(urls, o.token, fetcher, { ...defaultBackoff, ...o.backoff }, maker, o.logger);
  }

  /** What happens in all logs of the tenant, as it happens: no history, and nothing of the time while the connection is away. */
  live(o: LiveOptions = {}): AsyncGenerator<CanonicalEvent, void, undefined> {
    return live(this.http, { ...o, signal: o.signal ?? this.leave.signal });
  }

  /** Several logs and the announcements on one connection, of which browsers have six: at most eight topics. */
  topics(o: TopicOptions): AsyncGenerator<TopicMessage, void, undefined> {
    return topics(this.http, { ...o, signal: o.signal ?? this.leave.signal });
  }

  /** The roles, models and tool servers of the installation. */
  status(o: CallOptions = {}): Promise<Status> {
    return this.get<Status>("/api/v1/status", o);
  }

  /** Who the server takes the program for, and what it may do. */
  me(o: CallOptions = {}): Promise<Me> {
    return this.get<Me>("/api/v1/me", o);
  }

  /** Makes a request to the HTTP API, once, for what has no method here. */
  call<T>(method: string, path: string, body?: unknown, o: CallOptions = {}): Promise<T> {
    return this.http.json<T>(path, { method, body, signal: until(this.leave.signal, o) });
  }

  protected get<T>(path: string, o: CallOptions): Promise<T> {
    const signal = until(this.leave.signal, o);
    return this.http.persist(() => this.http.json<T>(path, { signal }), signal);
  }

  /** Ends all connections. What goes on goes on. */
  close(): void {
    this.leave.abort();
  }
}

/** A Waggle installation as a program sees it. It makes no connection before one is needed. */
export class WaggleClient extends WaggleApi {
  /** Conversations. */
  readonly sessions: Sessions;
  /** Teams of agents. */
  readonly teams: Teams & { list: (o?: ListOptions) => AsyncGenerator<TeamView, void, undefined> };
  /** Tasks of the swarm. */
  readonly tasks: Tasks;
  /** Questions of all sessions, members of teams and tasks. */
  readonly questions: Inbox;
  /** Who is connected to the swarm, each list over all its pages. */
  readonly swarm: Record<"agents" | "services" | "clients" | "servers", (f?: SwarmFilter) => AsyncGenerator<Participant, void, undefined>>;
  private readonly open = new Set<{ close(): void }>();
  private readonly newId: () => string;

  constructor(o: WaggleOptions) {
    super(o);
    const newId = o.newId ?? uuid;
    this.newId = newId;
    const list = <T>(path: string, member: string, f?: ListOptions) => pages<T>(this.http, path, member, f, this.leave.signal);
    this.sessions = new Sessions(
      this.http,
      this.leave.signal,
      (id) => this.session(id),
      newId,
      (f) => list<SessionSummary>("/api/v1/sessions", "sessions", f),
    );
    this.teams = Object.assign(new Teams(this.http, (id) => this.team(id), this.leave.signal, newId), {
      list: (f?: ListOptions) => list<TeamView>("/api/v1/teams", "teams", f),
    });
    this.tasks = new Tasks(
      this.http,
      this.leave.signal,
      (id) => this.task(id),
      newId,
      (f) => list<TaskSummary>("/api/v1/tasks", "tasks", f),
    );
    this.questions = new Inbox(this.http, this.leave.signal, newId, (f) => list("/api/v1/questions", "questions", f));
    this.swarm = {
      agents: (f) => list("/api/v1/agents", "agents", f),
      services: (f) => list("/api/v1/services", "services", f),
      clients: (f) => list("/api/v1/clients", "clients", f),
      servers: (f) => list("/api/v1/mcp", "servers", f),
    };
  }

  /**
   * A session: without an id a new one, which its first message creates. With `after` only the later events are read, otherwise the
   * whole log. `fresh` says that the id is new: its log is read once the session has its first message.
   */
  session(id?: string, o: { after?: number; fresh?: boolean } = {}): Session {
    return this.keep(new Session(this.http, id ?? this.newId(), o.after ?? 0, o.fresh ?? id === undefined, this.newId));
  }

  /** A team that exists. `after`: only the later events are read. */
  team(id: string, o: { after?: number } = {}): Team {
    return this.keep(new Team(this.http, id, o.after ?? 0, this.newId));
  }

  /** A task that exists. `after`: only the later events are read. */
  task(id: string, o: { after?: number } = {}): Task {
    return this.keep(new Task(this.http, id, o.after ?? 0, this.newId));
  }

  private keep<T extends { close(): void; signal: AbortSignal }>(item: T): T {
    if (this.leave.signal.aborted) throw closedError();
    this.open.add(item);
    item.signal.addEventListener("abort", () => this.open.delete(item), { once: true });
    return item;
  }

  /** A log in pages, and the files that members have made. */
  log(kind: Log["kind"], id: string): Log {
    return new Log(this.http, this.leave.signal, kind, id);
  }

  /** What limits the principal and its tenant, and how much of it is used. */
  async quotas(o: CallOptions = {}): Promise<Quota[]> {
    return (await this.get<QuotaList>("/api/v1/quotas", o)).quotas;
  }

  /**
   * Calls a tool of a provider, outside of sessions and tasks, and waits for the outcome. A repeat with the same id joins the call.
   * A status of `unknown` says that nobody knows whether the tool had its effect.
   */
  async callTool(provider: string, tool: string, c: NewToolCall, o: CallOptions = {}): Promise<CallView> {
    const path = `/api/v1/tools/${encodeURIComponent(provider)}/${encodeURIComponent(tool)}/call?wait=20`;
    const signal = until(this.leave.signal, o);
    const body = { ...c, id: c.id ?? this.newId() };
    for (;;) {
      const call = await this.http.persist(() => this.http.json<CallView>(path, { method: "POST", body, signal }), signal);
      if (call.status !== "queued" && call.status !== "running") return call;
    }
  }

  /** Ends all connections. What goes on goes on. */
  override close(): void {
    super.close();
    for (const item of this.open) item.close();
    this.open.clear();
  }
}

/** The sessions that the principal may see. */
export class Sessions {
  /** For `WaggleClient`. */
  constructor(
    private readonly http: Http,
    private readonly signal: AbortSignal,
    private readonly session: (id: string) => Session,
    private readonly newId: () => string,
    /** Sessions, the newest change first, over all pages. */
    readonly list: (f?: SessionFilter) => AsyncGenerator<SessionSummary, void, undefined>,
  ) {}

  /**
   * Creates a session at once, with preferences for all its messages. A repeat with the same `id` returns the same session; rejects
   * with `SESSION_EXISTS` if the id belongs to another one. Default: a new one.
   */
  async create(o: { id?: string } & Pick<SendOptions, "confirmPlan" | "onBusy" | "language"> & CallOptions = {}): Promise<Session> {
    const { id = this.newId(), confirmPlan, onBusy, language } = o;
    const signal = until(this.signal, o);
    const body = { session_id: id, confirm_plan: confirmPlan, on_busy: onBusy, language };
    const request = { method: "POST", body, signal };
    const made = await this.http.persist(() => this.http.json<SessionName>("/api/v1/sessions", request), signal);
    return this.session(made.session_id);
  }

  /** Restores an exported session, here or on another installation with the same key. */
  async import(state: unknown, o: CallOptions = {}): Promise<{ session: Session; restored: boolean }> {
    const signal = until(this.signal, o);
    const s = state as { signed?: unknown; signed_state?: unknown };
    const body = s.signed ?? s.signed_state ?? state;
    const r = await this.http.persist(
      () => this.http.json<ImportReply>("/api/v1/sessions/import", { method: "POST", body, signal }),
      signal,
    );
    return { session: this.session(r.session), restored: r.restored };
  }
}
