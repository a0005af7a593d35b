import { Backoff, type BackoffOptions, rest, retryAfter } from "./backoff.js";
import { abortError, parsed, problemError, transient, unreachable, WaggleError } from "./failure.js";
import type { SocketMaker } from "./socket.js";

/** A proxy holds an answer back until its end, if nothing of it has come after so many milliseconds. */
const held = 3000;

/** The gateways behind such proxies, for all clients here. */
const holding = new Set<string>();

/** A token, or what returns one: it is asked again when the server no longer takes the last one. */
export type Token = string | (() => string | Promise<string>);

/** How long a call may take: until the signal is aborted, or for so many milliseconds. Default: until the server answers. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

/** Like AbortSignal.timeout. Node 20 may collect that one before it fires if only AbortSignal.any refers to it. */
function after(ms: number): AbortSignal {
  const late = new AbortController();
  const timer: unknown = setTimeout(() => late.abort(new DOMException("The time-out of the call has passed.", "TimeoutError")), ms);
  (timer as { unref?: () => void }).unref?.();
  return late.signal;
}

/** The signals with which the options of a call end it. */
function limitsOf(o: CallOptions): AbortSignal[] {
  const limits = o.signal ? [o.signal] : [];
  return o.timeoutMs === undefined ? limits : [...limits, after(o.timeoutMs)];
}

/** The signal that ends a call: that of the whole, or an option of its own. */
export function until(whole: AbortSignal, o: CallOptions = {}): AbortSignal {
  const limits = limitsOf(o);
  return limits.length > 0 ? AbortSignal.any([whole, ...limits]) : whole;
}

/** Waits for a promise within the limits of a call. The work that settles the promise is not stopped. */
export function bounded<T>(promise: Promise<T>, o: CallOptions = {}): Promise<T> {
  const limits = limitsOf(o);
  if (limits.length === 0) return promise;
  const signal = AbortSignal.any(limits);
  return new Promise((ok, no) => {
    const stop = () => no(abortError(signal));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    void promise.then(ok, no).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Is told of repeated requests, reconnects and failures of tools. `console` is one. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
}

/** A request to the HTTP API. */
export interface HttpRequest {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** The way to the gateways: base addresses, credentials, and which gateway is tried next. */
export class Http {
  private at = 0;
  /** Not a member that an inspector prints. */
  readonly #token: Token | undefined;
  #known: Promise<string> | undefined;
  /** How long, in milliseconds, an answer may take to begin before a WebSocket is tried. */
  maxWait = held;

  constructor(
    private readonly urls: readonly string[],
    token: Token | undefined,
    private readonly fetcher: typeof fetch,
    readonly backoff: BackoffOptions,
    /** Makes WebSockets; undefined: none. */
    readonly sockets?: SocketMaker,
    readonly logger?: Logger,
  ) {
    this.#token = token;
  }

  /** Whether streams come over WebSockets: a proxy before the gateway holds answers back. */
  get overSockets(): boolean {
    return holding.has(this.base);
  }

  /** Notes that nothing of an answer has come. */
  tryASocket(): void {
    holding.add(this.base);
  }

  /** Notes whether a stream came over a WebSocket. If not, the next answer has more time. */
  triedSocket(came: boolean): void {
    if (!came) holding.delete(this.base);
    this.maxWait = came ? held : 2 * this.maxWait;
  }

  /** The address of the gateway that is in use, without a path. */
  get base(): string {
    return this.urls[this.at % this.urls.length] as string;
  }

  /** Turns to the next gateway of the list. */
  next(): void {
    this.at++;
  }

  /** Whether another token can be had. */
  get renewable(): boolean {
    return typeof this.#token === "function";
  }

  /** Forgets the token: the server does not take it any more. */
  renew(): void {
    this.#known = undefined;
  }

  /** The present token, empty without credentials. */
  async credentials(): Promise<string> {
    const source = this.#token;
    if (typeof source !== "function") return source ?? "";
    this.#known ??= Promise.resolve().then(source);
    try {
      return await this.#known;
    } catch (cause) {
      this.#known = undefined;
      throw new WaggleError(unreachable, "the program's token function failed", { cause });
    }
  }

  /** Makes one request. An answer that reports an error is thrown, and so is a failure to get one. */
  async request(path: string, r: HttpRequest = {}): Promise<Response> {
    let answer = await this.once(path, r);
    if (answer.status === 401 && this.renewable) {
      await answer.body?.cancel();
      this.renew();
      answer = await this.once(path, r);
    }
    if (answer.ok) return answer;
    const status = answer.type === "opaqueredirect" ? 302 : answer.status; // a browser does not say which
    const error = problemError(status, await answer.text().catch(() => ""));
    throw Object.assign(error, { retryAfter: retryAfter(answer.headers.get("Retry-After")) });
  }

  private async once(path: string, r: HttpRequest): Promise<Response> {
    const headers: Record<string, string> = { ...r.headers };
    const token = await this.credentials();
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const init: RequestInit = { method: r.method ?? "GET", headers, cache: "no-store", redirect: "manual" }; // the token is for the gateway
    if (r.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(r.body);
    }
    if (r.signal) init.signal = r.signal;
    const base = this.base;
    try {
      return await this.fetcher(base + path, init);
    } catch (cause) {
      if (r.signal?.aborted) throw abortError(r.signal);
      throw new WaggleError(unreachable, `${base} cannot be reached`, { cause });
    }
  }

  /** Makes one request and returns the document of the answer, undefined if it has none. */
  async json<T>(path: string, r?: HttpRequest): Promise<T> {
    const text = await this.whole(r, (await this.request(path, r)).text());
    return (text === "" ? undefined : parsed<T>(text, `the answer of ${this.base}`)) as T;
  }

  /** Fetches a file. */
  file(path: string, signal: AbortSignal): Promise<Blob> {
    return this.persist(async () => this.whole({ signal }, (await this.request(path, { signal })).blob()), signal);
  }

  /** Waits for the body of an answer, which may break off. */
  private async whole<T>(r: HttpRequest | undefined, body: Promise<T>): Promise<T> {
    try {
      return await body;
    } catch (cause) {
      if (r?.signal?.aborted) throw abortError(r.signal);
      throw new WaggleError(unreachable, `the answer of ${this.base} broke off`, { cause });
    }
  }

  /** Carries a request that may be repeated out, at one gateway after the other, until the server answers it. */
  async persist<T>(attempt: (sent: number) => Promise<T>, signal: AbortSignal): Promise<T> {
    const pauses = new Backoff(this.backoff);
    for (let sent = 0; ; sent++) {
      try {
        return await attempt(sent);
      } catch (error) {
        if (signal.aborted) throw abortError(signal);
        if (!(error instanceof WaggleError) || !away(error)) throw error;
        this.next();
        const pause = pauses.pause(pauseOf(error));
        this.logger?.info(`a request is repeated in ${Math.round(pause)} ms: ${error.message}`);
        if (!(await rest(pause, signal))) throw abortError(signal);
      }
    }
  }
}

/** Whether the server is away or busy, and has not refused the request for what it is. */
export function away(e: WaggleError): boolean {
  const busy = ["RATE_LIMITED", "TOO_MANY_CONNECTIONS", "HTTP_429"].includes(e.code);
  return busy || e.code === unreachable || e.status >= 500 || (e.status === 408 && e.code !== "INPUT_EXPIRED");
}

/** Whether a stream that was refused so would be refused again. */
export function final(e: WaggleError): boolean {
  return e.status >= 300 && !transient(e.status);
}

/** The pause that the server has asked for with an error. */
export function pauseOf(e: unknown): { retryAfter: number } {
  return { retryAfter: (e as { retryAfter?: number } | undefined)?.retryAfter ?? 0 };
}

/** A query, with its question mark, of the members that have a value. */
export function query(members: object): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined && value !== "") q.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = q.toString();
  return text && `?${text}`;
}

/** The address of a gateway for HTTP, without a dialect's path. */
export function baseOf(url: string): string {
  if (!url) throw new WaggleError("INVALID_FIELD", "url names no gateway", { field: "url" });
  const u = new URL(url.replace(/^ws/, "http"));
  return u.origin + u.pathname.replace(/(\/ws(\/.*)?|\/agui)?\/*$/, "");
}

/** A random id; pages without TLS have no crypto.randomUUID. */
export function uuid(): string {
  const hex = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0"));
  return hex.join("");
}
