import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** A proxy that holds each answer back until its end, as some virus scanners do. WebSockets pass, if it lets them. */
export class HoldingProxy {
  /** Whether WebSockets pass. */
  sockets = true;
  /** The handshakes so far. */
  handshakes = 0;
  /** Is called at each handshake, and when a WebSocket has ended. */
  changed = () => {};
  private readonly open = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async to(url: string): Promise<HoldingProxy> {
    const { hostname, port } = new URL(url);
    const server = createServer((q, a) => {
      const on = request({ hostname, port, path: q.url, method: q.method, headers: q.headers }, (r) => {
        const parts: Buffer[] = [];
        r.on("data", (part) => parts.push(part));
        r.on("end", () => {
          a.writeHead(r.statusCode ?? 502, r.headers);
          a.end(Buffer.concat(parts));
        });
      });
      on.on("error", () => a.destroy());
      a.on("close", () => on.destroy());
      q.pipe(on);
    });
    await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
    const proxy = new HoldingProxy(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on("upgrade", (q, from: Socket, head) => {
      proxy.handshakes++;
      proxy.changed();
      if (!proxy.sockets) return from.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      const to = connect(Number(port), hostname);
      const lines = q.rawHeaders.flatMap((v, i) => (i % 2 ? [] : [`${v}: ${q.rawHeaders[i + 1]}`]));
      to.write(`${q.method} ${q.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      to.write(head);
      for (const [one, other] of [
        [from, to],
        [to, from],
      ] as const) {
        proxy.open.add(one);
        one.pipe(other);
        one.on("error", () => {});
        one.on("close", () => {
          proxy.open.delete(one);
          other.destroy();
          proxy.changed();
        });
      }
    });
    return proxy;
  }

  /** Waits for a state of the proxy. */
  until(there: () => boolean): Promise<void> {
    return new Promise((go) => {
      this.changed = () => there() && go();
      this.changed();
    });
  }

  /** Whether no WebSocket passes now. */
  get idle(): boolean {
    return this.open.size === 0;
  }

  /** Breaks the WebSockets that pass now, and returns how many connections these are. */
  cut(): number {
    const n = this.open.size;
    for (const s of this.open) s.destroy();
    return n;
  }

  end(): void {
    this.cut();
    this.server.closeAllConnections();
    this.server.close();
  }
}
