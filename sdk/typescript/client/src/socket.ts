import type { Http } from "./http.js";
import { type SseMessage, SseParser } from "./sse.js";

/** What is needed of a WebSocket: that of a browser, of Node 22 or of the package ws. */
export interface SocketLike {
  binaryType?: string;
  onopen: ((e: never) => void) | null;
  onmessage: ((e: never) => void) | null;
  onclose: ((e: never) => void) | null;
  onerror: ((e: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

/** Makes WebSockets. */
export type SocketMaker = new (url: string, protocols?: string[]) => SocketLike;

/** Opens a WebSocket at the gateway that is in use, with the present token. */
export async function openSocket(http: Http, Maker: SocketMaker, path: string): Promise<SocketLike> {
  const token = await http.credentials();
  const protocols = token ? ["waggle", `waggle.token.${base64url(token)}`] : undefined;
  return new Maker(http.base.replace(/^http/, "ws") + path, protocols);
}

/** Encodes a token for a subprotocol. */
export function base64url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
}

/** A WebSocket does not wait for its reader: one that leaves more than so many bytes ends the connection. */
const unread = 4 << 20;

/** Reads a stream of server-sent events that comes over a WebSocket, until that ends or the signal is aborted. */
export async function* readSocket(http: Http, Maker: SocketMaker, path: string, signal: AbortSignal): AsyncGenerator<SseMessage> {
  const socket = await openSocket(http, Maker, path);
  const parser = new SseParser();
  const decoder = new TextDecoder();
  let queue: SseMessage[] = [];
  let bytes = 0;
  let over = false;
  let wake = () => {};
  const end = () => {
    over = true;
    socket.onmessage = socket.onclose = null;
    socket.close(1000);
    wake();
  };
  socket.binaryType = "arraybuffer";
  socket.onerror = () => {};
  socket.onclose = end;
  socket.onmessage = ({ data }: { data: ArrayBuffer }) => {
    queue.push(...parser.push(decoder.decode(data, { stream: true })));
    bytes += data.byteLength;
    if (bytes > unread) end();
    wake();
  };
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    for (;;) {
      const all = queue;
      queue = [];
      bytes = 0;
      yield* all;
      if (queue.length > 0) continue;
      if (over) return;
      await new Promise<void>((done) => {
        wake = done;
      });
    }
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}
