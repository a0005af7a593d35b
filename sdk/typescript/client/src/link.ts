import { Backoff, rest } from "./backoff.js";
import { closedError, WaggleError } from "./failure.js";
import type { Http } from "./http.js";
import { openSocket, type SocketLike, type SocketMaker } from "./socket.js";

/** A frame of any protocol. */
// biome-ignore lint/suspicious/noExplicitAny: frames of four protocols, which their readers take apart
export type Frame = Record<string, any>;

/** What a link carries. */
export interface Protocol {
  /** The path with its query, anew for each connection. */
  path: () => string;
  /** Introduces the client on a new connection, and resolves once the server has greeted. */
  begin?: (send: (f: Frame) => void) => void;
  /** Takes a frame. Returns `"ready"` once the server has greeted. */
  take: (f: Frame) => "ready" | undefined;
  /** A sign of life to ask for while nothing comes. */
  ping?: () => Frame;
  /** Is told of a connection that was ready and has ended. */
  lost?: () => void;
}

interface Outgoing {
  frame: Frame;
  /** Whether a frame of the server shows that it has this one, or has refused it. */
  settled: (f: Frame) => boolean;
  sent: boolean;
}

const silence = 20_000;
const maxPending = 1024;

/**
 * A WebSocket that is made again when it breaks. A frame that was sent is sent on each new connection until a frame of
 * the server settles it.
 */
export class Link {
  private socket: SocketLike | undefined;
  private ready = false;
  private pending: Outgoing[] = [];
  private readonly leave = new AbortController();
  private readonly gone: ((e: WaggleError) => void)[] = [];
  private error: WaggleError | undefined;

  constructor(
    private readonly http: Http,
    private readonly protocol: Protocol,
  ) {
    void this.run();
  }

  /** Whether no frame waits for the server. */
  get idle(): boolean {
    return this.pending.length === 0;
  }

  /** Why the link has ended, undefined if it has not. */
  get ended(): WaggleError | undefined {
    return this.error;
  }

  /** Is told of the end of the link. */
  onEnd(f: (e: WaggleError) => void): void {
    if (this.error) f(this.error);
    else this.gone.push(f);
  }

  /** Sends a frame on each connection until it is settled. */
  send(frame: Frame, settled: (f: Frame) => boolean): void {
    if (this.error) throw this.error;
    if (this.pending.length >= maxPending) throw new WaggleError("QUEUE_FULL", "too many frames wait for the server");
    this.pending.push({ frame, settled, sent: false });
    this.flush();
  }

  /** Sends a frame once, if a connection is there. */
  tell(frame: Frame): boolean {
    if (!this.ready) return false;
    this.socket?.send(JSON.stringify(frame));
    return true;
  }

  /** Ends the present connection as a bad line does; the link makes another one. */
  cut(): void {
    this.socket?.close(4000, "cut");
  }

  /** Ends the link, because coming back would change nothing. */
  fail(e: WaggleError): void {
    this.end(e);
    this.close();
  }

  /** Ends the link. */
  close(): void {
    this.leave.abort();
    this.socket?.close(1000);
    this.end(closedError());
  }

  private end(e: WaggleError): void {
    if (this.error) return;
    this.error = e;
    for (const f of this.gone) f(e);
  }

  private flush(): void {
    if (!this.ready) return;
    for (const o of this.pending) {
      if (o.sent) continue;
      o.sent = true;
      this.socket?.send(JSON.stringify(o.frame));
    }
  }

  private async run(): Promise<void> {
    const maker = this.http.sockets;
    if (!maker) {
      return this.end(new WaggleError("NO_WEBSOCKET", 'there is no WebSocket here: pass one, such as that of the package "ws"'));
    }
    const pauses = new Backoff(this.http.backoff);
    while (!this.leave.signal.aborted) {
      const began = Date.now();
      let code = 0;
      let reason = "";
      try {
        [code, reason] = await this.once(maker);
      } catch (e) {
        reason = String(e);
      }
      const wasReady = this.ready;
      this.ready = false;
      this.socket = undefined;
      for (const o of this.pending) o.sent = false;
      if (wasReady) this.protocol.lost?.();
      if (this.leave.signal.aborted) break;
      if (code === 4401 && this.http.renewable) this.http.renew();
      else if (finalClose(code))
        return this.end(new WaggleError(reason || "CLOSED", `the server closed the connection: ${reason} (${code})`));
      if (wasReady && Date.now() - began > this.http.backoff.max) pauses.reset();
      this.http.next();
      if (!(await rest(pauses.pause({ goodbye: code === 1001 || code === 1012 }), this.leave.signal))) break;
    }
    this.end(closedError());
  }

  /** Lives through one connection and returns its close code. */
  private async once(Maker: SocketMaker): Promise<[number, string]> {
    const socket = await openSocket(this.http, Maker, this.protocol.path());
    this.socket = socket;
    return new Promise((done) => {
      let heard = Date.now();
      let asked = false;
      const watch = setInterval(() => {
        const quiet = Date.now() - heard;
        if (quiet > 2 * silence) leave(0, "silent");
        else if (quiet > silence && !asked && this.ready && this.protocol.ping) {
          asked = true;
          socket.send(JSON.stringify(this.protocol.ping()));
        }
      }, silence / 4);
      (watch as { unref?: () => void }).unref?.();
      const leave = (code: number, reason: string) => {
        clearInterval(watch);
        socket.onmessage = socket.onclose = null;
        if (code === 0) socket.close();
        done([code, reason]);
      };
      socket.onopen = () => this.protocol.begin?.((f) => socket.send(JSON.stringify(f)));
      socket.onerror = () => {};
      socket.onclose = (e: { code: number; reason: unknown }) => leave(e.code || 1006, String(e.reason ?? ""));
      socket.onmessage = (e: { data: unknown }) => {
        heard = Date.now();
        asked = false;
        const frame = JSON.parse(String(e.data)) as Frame;
        this.pending = this.pending.filter((o) => !o.settled(frame));
        if (this.protocol.take(frame) === "ready") this.ready = true;
        this.flush();
      };
    });
  }
}

/** Whether a server that closes with the code does not want the client back. */
export function finalClose(code: number): boolean {
  return (code >= 4400 && code <= 4499) || code === 1002 || code === 1003 || code === 1007 || code === 1008 || code === 1009;
}
