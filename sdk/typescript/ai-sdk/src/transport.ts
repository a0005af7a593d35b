import { abortError, baseOf, Http, type HttpRequest, readStream, type Token, WaggleError } from "@waggle-dev/client/stream";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import type { WaggleUIMessage } from "./types.js";

/** How a chat is reached, and what its runs are like. */
export interface WaggleChatOptions {
  /** The address of a gateway, or of several that serve the same chats. Default: the page's own origin. */
  url?: string | readonly string[];
  /** An API key or a JWT; or what returns one, which is called again when the server no longer takes the last one. */
  token?: Token;
  /** Members of each request: `agent`, `mode`, `confirmPlan`, `onBusy`, `budget`, `tools` and others of PROTOCOL-AISDK.md. */
  body?: object | (() => object);
  /** Headers of each request. */
  headers?: Record<string, string> | (() => Record<string, string>);
  /**
   * What a page that ends a stream wants, with `stop()` or because its component unmounts: `"stop"` the run for all who watch it (the
   * default), or `"leave"` it, which continues.
   */
  onAbort?: "stop" | "leave";
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

type Send<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type Reconnect<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0] & { abortSignal?: AbortSignal | undefined };

/** Pauses between connections, in milliseconds. */
const pauses = { min: 250, max: 10_000 };

/** How long a stopped request may take to say which run it has begun, in milliseconds. */
const maxWait = 30_000;

/** The transport's options, which have keys: no members that an inspector prints. */
const secrets = new WeakMap<object, WaggleChatOptions>();

/**
 * A ChatTransport whose chats live in Waggle. A stream that breaks is resumed after its last chunk, at any gateway, and a message
 * that is sent twice is answered once.
 */
export class WaggleChatTransport<M extends UIMessage = WaggleUIMessage> implements ChatTransport<M> {
  /** A resumed stream has the whole message. */
  readonly resumeStreamIsReplay = true;
  private readonly http: Http;

  constructor(options: WaggleChatOptions = {}) {
    secrets.set(this, options);
    const urls = [options.url ?? globalThis.location?.origin ?? ""].flat().map(baseOf);
    const fetcher: typeof fetch = (input, init) => (options.fetch ?? globalThis.fetch)(input, init);
    this.http = new Http(urls, options.token, fetcher, pauses);
  }

  private get options(): WaggleChatOptions {
    return secrets.get(this) as WaggleChatOptions;
  }

  /** Sends the newest message, or the answers that it has, and returns what follows. */
  async sendMessages({
    chatId,
    messages,
    trigger,
    messageId,
    abortSignal,
    body,
    headers,
  }: Send<M>): Promise<ReadableStream<UIMessageChunk>> {
    const newest = messages.at(-1);
    if (newest === undefined) throw new WaggleError("INVALID_FIELD", "The chat has no message to send.", { field: "messages" });
    const attempt = trigger === "regenerate-message" ? { attempt: crypto.randomUUID() } : {};
    const whole = { ...resolved(this.options.body), ...body, id: chatId, messages: [newest], trigger, messageId, ...attempt };
    const reading = new Reading(this, chatId, this.headers(headers), abortSignal, { method: "POST", body: whole });
    return reading.stream();
  }

  /** Joins the run that is active: its whole message so far, and what follows. `null` if none is. */
  async reconnectToStream({ chatId, abortSignal, headers }: Reconnect<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    const reading = new Reading(this, chatId, this.headers(headers), abortSignal);
    return (await reading.begins()) ? reading.stream() : null;
  }

  /** The newest messages of a chat, for `useChat({ messages })`; none for a chat that does not exist yet. */
  async history(chatId: string, o: { signal?: AbortSignal } = {}): Promise<M[]> {
    const page = await this.http.json<{ messages: M[] }>(`${pathOf(chatId)}/messages`, { headers: this.headers(), signal: o.signal });
    return page.messages;
  }

  /** Stops the active run of a chat, or the one with the id, for all who watch it. */
  async stop(chatId: string, runId?: string): Promise<void> {
    const signal = AbortSignal.timeout(maxWait);
    const request: HttpRequest = { method: "POST", body: runId === undefined ? {} : { runId }, headers: this.headers(), signal };
    await this.http
      .persist(() => this.http.request(`${pathOf(chatId)}/stop`, request), signal)
      .catch((error) => {
        if (!(error instanceof WaggleError) || error.code !== "RUN_OVER") throw error;
      });
  }

  private headers(more?: Record<string, string> | Headers): Record<string, string> {
    return { ...resolved(this.options.headers), ...(more instanceof Headers ? Object.fromEntries(more) : more) };
  }

  /** @internal */
  get stops(): boolean {
    return this.options.onAbort !== "leave";
  }

  /** @internal */
  get connection(): Http {
    return this.http;
  }
}

function resolved<T extends object>(value: T | (() => T) | undefined): T | undefined {
  return typeof value === "function" ? (value as () => T)() : value;
}

function pathOf(chatId: string): string {
  return `/ai/chat/${encodeURIComponent(chatId)}`;
}

/** A chunk as it comes. */
type Chunk = UIMessageChunk & { type: string; messageId?: string; transient?: boolean; resumable?: boolean; data?: { runId?: string } };

/** One response of the protocol, over any number of connections. */
class Reading {
  private last: string | undefined;
  private run: string | undefined;
  private over = false;
  private ahead: IteratorResult<Chunk, void> | undefined;
  private readonly leave = new AbortController();
  private readonly chunks: AsyncGenerator<Chunk, void, undefined>;

  constructor(
    private readonly transport: Pick<WaggleChatTransport, "stop"> & { connection: Http; stops: boolean },
    private readonly chatId: string,
    private readonly headers: Record<string, string>,
    private readonly signal: AbortSignal | undefined,
    /** The request that begins it; undefined: it joins. */
    private readonly first?: HttpRequest,
  ) {
    this.chunks = this.read();
  }

  /** Whether something follows. */
  async begins(): Promise<boolean> {
    const leave = () => this.leave.abort();
    this.signal?.addEventListener("abort", leave, { once: true });
    try {
      this.ahead = await this.chunks.next();
    } finally {
      this.signal?.removeEventListener("abort", leave);
    }
    if (this.signal?.aborted) throw abortError(this.signal);
    return !this.ahead.done;
  }

  /** The chunks as a stream, which ends with the run, or when the page has aborted it. */
  stream(): ReadableStream<UIMessageChunk> {
    const abort = () => void this.abort();
    return new ReadableStream<UIMessageChunk>({
      start: () => {
        if (this.signal?.aborted) abort();
        this.signal?.addEventListener("abort", abort, { once: true });
      },
      pull: async (to) => {
        try {
          const { done, value } = this.ahead ?? (await this.chunks.next());
          this.ahead = undefined;
          if (!done) return to.enqueue(value);
          if (this.signal?.aborted) to.error(abortError(this.signal));
          else to.close();
        } catch (error) {
          to.error(error);
        }
        this.signal?.removeEventListener("abort", abort);
      },
      cancel: () => {
        if (!this.signal?.aborted) this.leave.abort(); // its reader has gone, and has not said that the run is to stop
      },
    });
  }

  /** Does what a page wants that has aborted the stream. */
  private async abort(): Promise<void> {
    if (!this.transport.stops || this.over) return this.leave.abort();
    const late = AbortSignal.timeout(maxWait);
    late.addEventListener("abort", () => this.leave.abort());
    try {
      while (this.run === undefined && !(await this.chunks.next()).done);
      if (this.run !== undefined && !this.over) await this.transport.stop(this.chatId, this.run);
    } catch {
      // the run has ended, or the server is away: the page has left
    } finally {
      this.leave.abort();
    }
  }

  private async *read(): AsyncGenerator<Chunk, void, undefined> {
    // What stands for the log up to a position comes as a whole, the position last. If it breaks there, it comes again.
    let held: Chunk[] = [];
    const request = () => {
      held = [];
      return this.request();
    };
    const reading = { request, take: (m: { data?: string }) => m.data !== undefined, ends: true };
    for await (const m of readStream(this.transport.connection, reading, { signal: this.leave.signal })) {
      if (m.data === "[DONE]") {
        this.over = true;
        return;
      }
      const chunk = JSON.parse(m.data as string) as Chunk;
      if (chunk.resumable) continue; // the gateway ends the connection
      this.run = chunk.type === "start" ? (chunk.messageId ?? this.run) : (chunk.data?.runId ?? this.run);
      if (m.id === undefined && !chunk.transient && chunk.type !== "error") {
        held.push(chunk);
        continue;
      }
      this.last = m.id ?? this.last;
      yield* held;
      held = [];
      yield chunk;
    }
  }

  private request(): { path: string } & HttpRequest {
    if (this.last === undefined && this.first) return { path: "/ai/chat?version=7", ...this.first, headers: this.headers };
    const headers = this.last === undefined ? this.headers : { ...this.headers, "Last-Event-ID": this.last };
    return { path: `${pathOf(this.chatId)}/stream?version=7`, headers };
  }
}
