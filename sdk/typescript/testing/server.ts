import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as listen, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Bounds every wait of a test. Two cores may have much to do at once. */
export const maxWait = Number(process.env["WAGGLE_TS_MAX_WAIT"] ?? 90_000);

const binary = process.env["WAGGLE_E2E_BINARY"] ?? fileURLToPath(new URL("../../../bin/waggle", import.meta.url));

let lastPort = 20_000 + Number(process.env["VITEST_POOL_ID"] ?? 1) * 1000 + Math.floor(Math.random() * 500);

/** A port that is free: below those that the system gives away, and of a range of this process. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = ++lastPort;
    const s = listen();
    const free = await new Promise<boolean>((go) => {
      s.once("error", () => go(false));
      s.listen(port, "127.0.0.1", () => go(true));
    });
    if (!free) continue;
    await new Promise((go) => s.close(go));
    return port;
  }
}

/** A running waggle process. */
export class Waggle {
  private output = "";
  private constructor(
    readonly url: string,
    readonly dir: string,
    private readonly args: string[],
    private readonly env: Record<string, string>,
    private process: ChildProcess,
  ) {}

  /** Starts it, and waits until it is ready. */
  static async start(args: string[], o: { port?: number; dir?: string; env?: Record<string, string> } = {}): Promise<Waggle> {
    const port = o.port ?? (await freePort());
    const dir = o.dir ?? (await mkdtemp(join(tmpdir(), "waggle-ts-")));
    const w = new Waggle(`http://127.0.0.1:${port}`, dir, [...args, "--addr", `127.0.0.1:${port}`], o.env ?? {}, undefined as never);
    w.spawn();
    await w.ready();
    return w;
  }

  private spawn(): void {
    const env = { PATH: process.env["PATH"] ?? "", HOME: this.dir, TMPDIR: tmpdir(), ...this.env };
    this.process = spawn(resolve(binary), this.args, { cwd: this.dir, env, stdio: ["ignore", "pipe", "pipe"] });
    for (const s of [this.process.stdout, this.process.stderr])
      s?.on("data", (b) => {
        this.output = (this.output + b).slice(-20_000);
      });
  }

  private async ready(): Promise<void> {
    const end = Date.now() + maxWait;
    for (;;) {
      if (this.process.exitCode !== null) throw new Error(`waggle ended: ${this.output}`);
      const ok = await fetch(`${this.url}/readyz`).then(
        (r) => r.ok,
        () => false,
      );
      if (ok) return;
      if (Date.now() > end) throw new Error(`waggle is not ready: ${this.output}`);
      await new Promise((go) => setTimeout(go, 50));
    }
  }

  /** The value of an option with which it was started. */
  option(name: string): string {
    return this.args[this.args.indexOf(name) + 1] ?? "";
  }

  /** Ends it, at once unless a signal says otherwise, and starts it again at the same place. */
  async restart(signal?: NodeJS.Signals): Promise<void> {
    await this.kill(signal);
    this.spawn();
    await this.ready();
  }

  /** Kills it at once. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((go) => this.process.once("exit", go));
    this.process.kill(signal);
    await ended;
  }

  /** Kills it and removes its files. */
  async end(): Promise<void> {
    await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** Starts everything in one process, with the demo model, a workspace with a file, and more settings in YAML. */
export async function up(settings = "", env: Record<string, string> = {}): Promise<Waggle> {
  const dir = await mkdtemp(join(tmpdir(), "waggle-ts-"));
  const workspace = await mkdtemp(join(dir, "workspace-"));
  await writeFile(join(workspace, "notes.md"), "buy milk\n");
  const config = join(dir, "waggle.yaml");
  await writeFile(config, `gateway:\n  message_rate: 1000\n  message_burst: 1000\n${settings}`);
  return Waggle.start(
    [
      "up",
      "--config",
      config,
      "--nats-addr",
      `127.0.0.1:${await freePort()}`,
      "--telemetry-addr",
      `127.0.0.1:${await freePort()}`,
      "--data",
      join(dir, "data"),
      "--workspace",
      workspace,
    ],
    { dir, env },
  );
}

/** What a scripted model answers to a request. */
export interface Reply {
  text?: string;
  calls?: { name: string; args: unknown }[];
  /** The text comes in words with this pause between them. */
  pauseMs?: number;
  /** It answers with this status in place of all that. */
  status?: number;
}

/** A model in OpenAI's protocol that answers as the script says. */
export class Model {
  requests = 0;
  private constructor(
    private readonly server: Server,
    readonly env: Record<string, string>,
  ) {}

  static async start(script: (messages: { role: string; content: unknown }[], planning: boolean) => Reply): Promise<Model> {
    let model: Model;
    const server = createServer(async (q: IncomingMessage, a: ServerResponse) => {
      let body = "";
      for await (const piece of q) body += piece;
      const { messages, response_format } = JSON.parse(body || "{}");
      if (messages) model.requests++; // otherwise it is asked if it is there
      await answer(a, script(messages ?? [], response_format !== undefined));
    });
    await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
    const { port } = server.address() as AddressInfo;
    model = new Model(server, {
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_API_KEY: "sk-test",
      WAGGLE_MODEL: "openai:scripted",
    });
    return model;
  }

  end(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

async function answer(a: ServerResponse, r: Reply): Promise<void> {
  if (r.status) return void a.writeHead(r.status, { "Content-Type": "application/json" }).end('{"error":{"message":"out of order"}}');
  a.writeHead(200, { "Content-Type": "text/event-stream" });
  const chunk = (delta: unknown, finish: string | null = null) =>
    a.write(
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  chunk({ role: "assistant", content: "" });
  for (const word of (r.text ?? "").split(/(?<= )/)) {
    if (word) chunk({ content: word });
    if (r.pauseMs) await new Promise((go) => setTimeout(go, r.pauseMs));
  }
  r.calls?.forEach((c, index) => {
    chunk({
      tool_calls: [
        {
          index,
          id: `call_${index}_${Math.random().toString(36).slice(2)}`,
          type: "function",
          function: { name: c.name, arguments: JSON.stringify(c.args) },
        },
      ],
    });
  });
  chunk({}, r.calls ? "tool_calls" : "stop");
  a.end("data: [DONE]\n\n");
}

/** A line to the first of several servers that takes it. A test can cut it. */
export class Line {
  cuts = 0;
  private readonly sockets = new Set<Socket>();
  private constructor(
    private readonly server: ReturnType<typeof listen>,
    readonly url: string,
  ) {}

  static async to(...urls: string[]): Promise<Line> {
    let proxy: Line;
    const server = listen(async (from) => {
      from.on("error", () => {});
      const on = await reach(urls);
      if (!on) return void from.destroy();
      for (const s of [from, on]) {
        proxy.sockets.add(s);
        s.on("error", () => {});
        s.on("close", () => {
          proxy.sockets.delete(s);
          from.destroy();
          on.destroy();
        });
      }
      if (from.destroyed) on.destroy();
      from.pipe(on).pipe(from);
    });
    await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
    proxy = new Line(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return proxy;
  }

  /** Cuts every line that is open, and returns how many there were. */
  cut(): number {
    const open = this.sockets.size / 2;
    for (const s of this.sockets) s.destroy();
    this.cuts += open;
    return open;
  }

  end(): void {
    this.cut();
    this.server.close();
  }
}

/** Connects to the first of the servers that accepts. */
async function reach(urls: readonly string[]): Promise<Socket | undefined> {
  for (const url of urls) {
    const { port, hostname } = new URL(url);
    const socket = connect(Number(port), hostname);
    const open = await new Promise<boolean>((go) => {
      socket.once("connect", () => go(true));
      socket.once("error", () => go(false));
    });
    if (open) return socket;
  }
  return undefined;
}

/** Makes no WebSocket: what a client does goes over HTTP. */
export function noSocket(): never {
  throw new Error("a client needs no WebSocket");
}

/** Waits until what is asked for is there; `next` is called again whenever something may have changed. */
export async function within<T>(promise: Promise<T>, what: string, ms = maxWait): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, no) => {
    timer = setTimeout(() => no(new Error(`${what}: not within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
