import { Backoff, rest } from "./backoff.js";
import { GapError, parsed, unreachable, WaggleError } from "./failure.js";
import type { CanonicalEvent } from "./generated/events.js";
import { final, type Http, type HttpRequest, pauseOf } from "./http.js";
import { readSocket } from "./socket.js";
import { readSse, type SseMessage } from "./sse.js";

/** How a log is read. */
export interface FollowOptions {
  /** The sequence of the last event that is known: the later ones follow. Default: 0, the whole log. */
  after?: number;
  /** Ends the reading. */
  signal?: AbortSignal;
  /** Is told of each connection, and of its loss with the reason. */
  onConnection?: (up: boolean, error?: unknown) => void;
  /** Is told the first sequence that the server still has, where it has less than was asked for. */
  onExpired?: (first: number) => void;
  /** A connection that sends nothing for so many milliseconds is dead. Default: 45,000; streams of topics have a sign of life each 10 s. */
  silence?: number;
}

/** What a server says of a stream that it does not show. */
export interface ProblemDocument {
  title: string;
  detail: string;
  status: number;
  /** The first event that the server still has. */
  first?: number;
}

/** What a stream is read with: the place in it, and how its messages are handled. */
export interface Reading {
  /** Where it is asked for, and how, anew for each connection. */
  request: () => { path: string } & HttpRequest;
  /** Takes an event and returns whether it is to be handed on. */
  take: (m: SseMessage) => boolean;
  /** An answer without a body ends the stream: nothing follows. */
  ends?: boolean;
}

/** A connection that sends nothing for so long is dead: gateways send heartbeats more often. */
const silence = 45_000;

/** Where a reader stands in a log: it takes each event once and in order. */
export class Position {
  constructor(public at: number) {}

  /** Notes an event and reports whether it is new. What does not follow is a GapError. */
  reach(from: number, to: number): boolean {
    if (to <= this.at) return false;
    if (from !== this.at + 1 || to < from) throw new GapError(this.at, from, to);
    this.at = to;
    return true;
  }

  /** Moves forward to where the log begins. */
  skip(to: number): void {
    this.at = Math.max(this.at, to);
  }
}

/**
 * Reads a stream and comes back when it breaks, until the signal is aborted. It ends with the error with which
 * coming back is pointless.
 */
export async function* readStream(http: Http, r: Reading, o: FollowOptions): AsyncGenerator<SseMessage, void, undefined> {
  const leave = new AbortController();
  const stop = () => leave.abort();
  if (o.signal?.aborted) return;
  o.signal?.addEventListener("abort", stop, { once: true });
  const pauses = new Backoff(http.backoff);
  try {
    for (;;) {
      const began = Date.now();
      const connection = new Connection(http, r, leave.signal, o.silence ?? silence);
      let error: unknown;
      let up = false;
      try {
        for await (const m of connection.messages()) {
          if (m === "up") {
            up = true;
            o.onConnection?.(true);
            continue;
          }
          if (!r.take(m)) continue;
          pauses.reset();
          yield m;
        }
      } catch (e) {
        error = e;
      }
      if (leave.signal.aborted) return;
      if (connection.held) continue; // over a WebSocket
      if (r.ends && connection.empty) return;
      if (up || error !== undefined) o.onConnection?.(false, error);
      if (error instanceof WaggleError && pointless(error)) throw error;
      if (error !== undefined && !(error instanceof WaggleError)) throw error;
      if (up && Date.now() - began > http.backoff.max) pauses.reset();
      http.next();
      const pause = pauses.pause({ ...pauseOf(error), goodbye: connection.goodbye });
      http.logger?.info(`a stream broke and resumes in ${Math.round(pause)} ms: ${error?.message ?? "end of the answer"}`);
      if (!(await rest(pause, leave.signal))) return;
    }
  } finally {
    o.signal?.removeEventListener("abort", stop);
    leave.abort();
  }

  function pointless(e: WaggleError): boolean {
    if (e.code === "CREDENTIALS_EXPIRED") {
      http.renew();
      return !http.renewable;
    }
    return final(e);
  }
}

/** One connection of a stream: the body of an answer, or where proxies hold answers back a WebSocket. */
class Connection {
  goodbye = false;
  /** Nothing has come of the answer: a WebSocket may get through. */
  held = false;
  /** The answer has no body. */
  empty = false;

  constructor(
    private readonly http: Http,
    private readonly r: Reading,
    private readonly signal: AbortSignal,
    private readonly silence: number,
  ) {}

  async *messages(): AsyncGenerator<SseMessage | "up"> {
    const { http } = this;
    const cut = new AbortController();
    const stop = () => cut.abort();
    if (this.signal.aborted) return;
    this.signal.addEventListener("abort", stop, { once: true });
    const request = this.r.request();
    const maker = request.method === undefined ? http.sockets : undefined;
    const socket = http.overSockets ? maker : undefined;
    let up = false;
    const late = () => {
      this.held = maker !== undefined && !socket;
      if (this.held) http.tryASocket();
      stop();
    };
    let timer = setTimeout(late, maker ? Math.min(http.maxWait, this.silence) : this.silence);
    try {
      const all = socket ? readSocket(http, socket, request.path, cut.signal) : this.answer(request, cut.signal);
      for await (const m of all) {
        clearTimeout(timer);
        timer = setTimeout(stop, this.silence);
        if (!up) yield "up";
        up = true;
        if (m.comment !== undefined) this.goodbye = m.comment === "waggle DRAINING";
        else yield m;
      }
    } catch (cause) {
      if (cause instanceof WaggleError) throw cause;
      throw new WaggleError(unreachable, "the connection broke", { cause });
    } finally {
      clearTimeout(timer);
      this.signal.removeEventListener("abort", stop);
      if (socket && !this.signal.aborted) http.triedSocket(up);
      cut.abort();
    }
  }

  private async *answer({ path, headers, ...request }: { path: string } & HttpRequest, signal: AbortSignal): AsyncGenerator<SseMessage> {
    const answer = await this.http.request(path, { ...request, headers: { Accept: "text/event-stream", ...headers }, signal });
    this.empty = answer.status === 204;
    if (!answer.body || this.empty) return;
    const media = answer.headers.get("Content-Type") ?? "";
    if (!/^text\/event-stream\b/i.test(media)) {
      await answer.body.cancel().catch(() => {});
      throw new WaggleError(unreachable, `the answer of ${this.http.base} is not a stream of events, but ${media}`);
    }
    yield* readSse(answer.body);
  }
}

/**
 * Reads a log from a position on, for ever: history first, then what happens, each event once and in order, however
 * often the connection breaks. Not reading loses nothing; it holds the server back, or ends a WebSocket, which comes back.
 */
export async function* follow(http: Http, path: string, o: FollowOptions = {}): AsyncGenerator<CanonicalEvent, void, undefined> {
  const position = new Position(o.after ?? 0);
  let event: CanonicalEvent | undefined;
  const reading: Reading = {
    request: () => ({ path: position.at > 0 ? `${path}?after=${position.at}` : path }),
    take: (m) => {
      if (m.event === "problem") return problem(m.data ?? "");
      if (m.id === undefined || m.data === undefined) return false;
      event = parsed<CanonicalEvent>(m.data, "an event of the stream");
      return position.reach(event.from ?? event.sequence, event.sequence);
    },
  };
  for await (const _ of readStream(http, reading, o)) yield event as CanonicalEvent;

  function problem(data: string): boolean {
    const p = parsed<ProblemDocument>(data, "a problem of the stream");
    if (p.title !== "HISTORY_EXPIRED" || p.first === undefined) {
      throw new WaggleError(p.title, p.detail, { status: p.status, detail: p });
    }
    position.skip(p.first - 1);
    http.logger?.warn(`the events before ${p.first} of ${path} have expired`);
    o.onExpired?.(p.first);
    return false;
  }
}
