import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A step of a case, as proto-schemas/sdk describes it. */
export interface Step {
  do: string;
  session?: string;
  task?: string;
  team?: string;
  step?: string;
  log?: string;
  after?: number;
  until?: number;
  types?: string[];
  type?: string;
  events?: number;
  timeout_ms?: number;
  method?: string;
  path?: string;
  id?: string;
  run?: string;
  text?: string;
  mode?: "chat" | "plan";
  confirm?: boolean;
  reason?: string;
  question?: string;
  approve?: boolean;
  feedback?: string;
  agent?: string;
  capability?: string;
  data?: unknown;
  file?: string;
  attach?: string;
  steps?: string[];
  none?: boolean;
}

/** A promise, and how it is tried. */
export interface Case {
  name: string;
  promise: string;
  real?: string;
  client?: { tokens?: string[] };
  program: Step[];
  sees: Record<string, unknown>[];
}

const contract = fileURLToPath(new URL("../../../proto-schemas/", import.meta.url));

/** All cases of proto-schemas/sdk. */
export function cases(): Case[] {
  const folder = join(contract, "sdk", "cases");
  return readdirSync(folder).flatMap((file) => JSON.parse(readFileSync(join(folder, file), "utf8")).cases as Case[]);
}

/** The server of the cases, which says what a program must see: sdk/go/internal/judge. */
export class Judge {
  private constructor(
    private readonly url: string,
    private readonly folder: string,
    private readonly process: ChildProcess,
  ) {}

  static async start(): Promise<Judge> {
    const folder = mkdtempSync(join(tmpdir(), "waggle-judge-"));
    const program = join(folder, "conform");
    execFileSync("go", ["build", "-o", program, "./internal/judge/conform"], { cwd: join(contract, "..", "sdk", "go"), stdio: "inherit" });
    const binary = process.env["WAGGLE_E2E_BINARY"] ?? join(contract, "..", "bin", "waggle");
    const started = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, WAGGLE_E2E_BINARY: binary } });
    for await (const line of createInterface({ input: started.stdout })) return new Judge(line, folder, started);
    throw new Error("the judge did not start");
  }

  /** Begins a case and returns the addresses of the gateways. */
  async begin(name: string): Promise<string[]> {
    return (await this.post<{ urls: string[] }>(name, {})).urls;
  }

  /** Does a step of the judge. */
  async tell(name: string, step: Step): Promise<void> {
    await this.post(`${name}/tell`, step);
  }

  /** Ends a case and returns what is wrong. */
  async end(name: string, seen: object[], pauses: number[]): Promise<string[]> {
    return (await this.post<{ wrong: string[] }>(`${name}/end`, { seen, pauses })).wrong;
  }

  private async post<T>(path: string, body: object): Promise<T> {
    const answer = await fetch(`${this.url}/cases/${path}`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as T;
  }

  async stop(): Promise<void> {
    const ended = new Promise((go) => this.process.once("exit", go));
    this.process.stdin?.end();
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
