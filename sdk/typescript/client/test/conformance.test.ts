import { type CanonicalEvent, type Run, type Session, WaggleClient, WaggleError } from "@waggle-dev/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Case, cases, Judge, type Step } from "../../testing/judge.js";

/** The pauses of a second and more, which nobody waits for here. */
const pauses: number[] = [];

vi.mock("../src/backoff.js", async (original) => {
  const real = await original<typeof import("../src/backoff.js")>();
  const rest = (ms: number, signal: AbortSignal) => {
    if (ms < 1000) return real.rest(ms, signal);
    pauses.push(Math.floor(ms / 1000));
    return Promise.resolve(!signal.aborted);
  };
  return { ...real, rest };
});

type Sight = Record<string, unknown>;
type Events = AsyncGenerator<CanonicalEvent, void, undefined>;

/** What a case does with the client. The programs of the other clients do the same. */
class Program {
  private readonly client: WaggleClient;
  private readonly runs = new Map<string, Run>();
  private readonly sessions = new Map<string, Session>();
  private readonly made = new Map<string, string>();
  private readonly readers = new Map<string, { events: Events; expired: number[]; gaps: number[] }>();
  private readonly asked: string[] = [];
  private readonly leave = new AbortController();

  constructor(
    private readonly judge: Judge,
    private readonly of: Case,
    urls: string[],
  ) {
    const tokens = of.client?.tokens ?? [];
    let next = 0;
    const token = tokens.length > 1 ? () => tokens[Math.min(next++, tokens.length - 1)] as string : tokens[0];
    this.client = new WaggleClient({ url: urls, backoff: { min: 1, max: 10 }, ...(token === undefined ? {} : { token }) });
  }

  close(): void {
    this.leave.abort();
    this.client.close();
  }

  private session(name = ""): Session {
    const s = this.sessions.get(name) ?? this.client.session(this.of.real ? undefined : name);
    this.sessions.set(name, s);
    return s;
  }

  /** The id of what the program has made under the name. */
  private named(name = ""): string {
    return this.made.get(name) ?? name;
  }

  private task(s: Step) {
    return this.client.task(this.named(s.task));
  }

  private team(s: Step) {
    return this.client.team(this.named(s.team));
  }

  private run(s: Step): Run {
    return this.runs.get(s.run ?? "") as Run;
  }

  private log(s: Step) {
    const [kind, name] = (s.log ?? "").split("/") as ["session", string];
    return this.client.log(kind, kind === "session" && this.of.real ? this.session(name).id : this.named(name));
  }

  private reader(s: Step) {
    const key = `${s.log} ${s.do}`;
    const known = this.readers.get(key);
    if (known) return known;
    const expired: number[] = [];
    const gaps: number[] = [];
    const signal = this.leave.signal;
    const o = { signal, onExpired: (first: number) => expired.push(first), ...(s.after ? { after: s.after } : {}) };
    const [kind, name = ""] = (s.log ?? "").split("/");
    const events =
      s.do === "live"
        ? this.client.live({ signal, onGap: (n) => gaps.push(n), ...(s.types ? { types: s.types as never } : {}) })
        : kind === "session"
          ? this.session(name).events(o)
          : kind === "team"
            ? this.client.team(this.named(name)).events(o)
            : this.client.task(this.named(name)).events(o);
    const reader = { events, expired, gaps };
    this.readers.set(key, reader);
    return reader;
  }

  private async read(s: Step): Promise<Sight> {
    const { events, expired, gaps } = this.reader(s);
    const seqs: number[] = [];
    const types: string[] = [];
    let text = "";
    for (;;) {
      const { value: e, done } = await events.next();
      if (done || !e) return { events: seqs, types, text, expired, gaps, ended: true };
      seqs.push(e.sequence);
      if (!s.types || s.types.includes(e.type)) types.push(e.type);
      if (e.type === "input.requested" || e.type === "task.asked")
        this.asked.push([...(e.subject ?? "").split(".").slice(1), e.data.input_id].join("."));
      if (e.type === "message.delta") text += e.data.text;
      if (e.type === s.type || (s.until && e.sequence >= s.until) || (s.do === "live" && seqs.length === s.events)) {
        const size = Buffer.byteLength(text);
        return { events: seqs, types, size, expired, gaps, data: e.data, ...(size > 1000 ? {} : { text }) };
      }
    }
  }

  private async send(s: Step): Promise<Sight> {
    const session = this.session(s.session);
    const run = session.send(s.text ?? "", {
      ...(s.id ? { id: s.id } : {}),
      ...(s.mode ? { mode: s.mode } : {}),
      ...(s.confirm ? { confirmPlan: true } : {}),
      ...(s.agent ? { agent: s.agent } : {}),
      ...(s.attach ? { files: [{ type: "text/plain", name: "note.txt", data: new TextEncoder().encode(s.attach) }] } : {}),
      ...(s.timeout_ms ? { timeoutMs: s.timeout_ms } : {}),
    });
    this.runs.set(s.run ?? "", run);
    await run.accepted();
    return {};
  }

  private async answer(s: Step): Promise<Sight> {
    const id = { first: this.asked[0], second: this.asked[1] }[s.question ?? ""] ?? s.question ?? "";
    const outcome = await this.client.questions.answer(id, {
      approved: s.approve ?? false,
      ...(s.feedback ? { feedback: s.feedback } : {}),
    });
    return { decision: outcome.decision };
  }

  /** Does a step, and returns what it shows. */
  async do(s: Step): Promise<Sight> {
    const o = s.timeout_ms ? { timeoutMs: s.timeout_ms } : {};
    switch (s.do) {
      case "tell":
        await this.judge.tell(this.of.name, s);
        return {};
      case "me":
        return { subject: (await this.client.me(o)).subject };
      case "call":
        return { body: await this.client.call(s.method ?? "GET", `/api/v1/${s.path}`, s.data, o) };
      case "read":
      case "live":
        return this.read(s);
      case "send":
        return this.send(s);
      case "create_session": {
        const wants = { ...(s.id ? { id: s.id } : {}), ...(s.mode ? { onBusy: s.mode as "reject" } : {}) };
        const session = await this.client.sessions.create({ ...wants, ...o });
        this.sessions.set(s.session ?? "", session);
        return { session: session.id };
      }
      case "solve": {
        const steps = (s.steps ?? []).map((title, i) => ({ id: `step_${i + 1}`, title }));
        const run = this.session(s.session).solve(steps);
        this.runs.set(s.run ?? "", run);
        await run.accepted();
        return {};
      }
      case "result": {
        const { text, outcome } = await this.run(s).result();
        return { text, size: Buffer.byteLength(text), outcome };
      }
      case "stop":
        await this.run(s).cancel(s.reason);
        return {};
      case "cancel":
        await this.session(s.session).cancel(o);
        return {};
      case "cancel_step":
        await this.session(s.session).cancelStep(s.step ?? "", s.reason, o);
        return {};
      case "restart_step":
        await this.session(s.session).restartStep(s.step ?? "", s.reason, o);
        return {};
      case "cancel_plan":
        await this.session(s.session).cancelPlan(s.reason, o);
        return {};
      case "replan":
        await this.session(s.session).replan(s.text, o);
        return {};
      case "show": {
        const d = await this.session(s.session).show(o);
        return { session: d["session_id"], runs: (d["runs"] as unknown[]).length };
      }
      case "delete":
        return { done: await this.session(s.session).delete(o) };
      case "list_sessions": {
        const ids: string[] = [];
        for await (const one of this.client.sessions.list()) ids.push(one.session_id);
        return { ids };
      }
      case "head": {
        const { first, last } = await this.log(s).head();
        return { first, last };
      }
      case "file":
        return file(await this.session(s.session).file({ object: { digest: s.file ?? "" } }, o));
      case "artifact":
        return file(await this.log(s).artifact(s.file ?? ""));
      case "questions": {
        const log = this.of.real ? this.session(s.session).id : (s.session ?? "");
        for (;;) {
          const ids: string[] = [];
          for await (const q of this.client.questions.list({ log })) ids.push(q.id);
          if (!s.none || ids.length === 0) return { ids };
        }
      }
      case "answer":
        return this.answer(s);
      default:
        return this.doInTheSwarm(s, o);
    }
  }

  private async doInTheSwarm(s: Step, o: object): Promise<Sight> {
    switch (s.do) {
      case "create_task": {
        const to = s.capability ? { capabilities: [s.capability] } : { agent: s.agent ?? "" };
        const task = await this.client.tasks.create({ data: s.data, ...to }, o);
        this.made.set(s.task ?? "", task.id);
        return { task: task.id };
      }
      case "retry_task": {
        const again = await this.task(s).retry();
        this.made.set(s.run ?? "", again);
        return { task: again, other: again !== this.named(s.task) };
      }
      case "task_result":
        return { result: (await this.task(s).result()).result };
      case "list_tasks": {
        const ids: string[] = [];
        for await (const one of this.client.tasks.list()) ids.push(one.task_id);
        return { ids, has: ids.includes(this.named(s.task)) };
      }
      case "show_task": {
        const d = await this.task(s).show(o);
        return { task: d.task_id, status: d.status };
      }
      case "cancel_task":
        await this.task(s).cancel(s.reason, o);
        return {};
      case "message_task":
        await this.task(s).message(s.data, o);
        return {};
      case "create_team": {
        const definition = { name: s.team ?? "", coordinator: "Boss", members: [{ name: "Boss" }, { name: "Coder" }] };
        const before = this.made.get(s.team ?? "");
        const team = await this.client.teams.create(definition as never, { ...o, ...(s.id ? { id: s.id } : {}) });
        this.made.set(s.team ?? "", team.id);
        return { team: team.id, same: team.id === before };
      }
      case "message_team":
        await this.team(s).message(s.text ?? "", { ...o, ...(s.id ? { id: s.id } : {}) });
        return {};
      case "stop_team":
        await this.team(s).stop({ ...o, ...(s.reason ? { reason: s.reason } : {}) });
        return {};
      case "close_team":
        await this.team(s).delete(o);
        return {};
      default:
        throw new Error(`the program cannot ${s.do}`);
    }
  }
}

/** Describes a file: its text, or its size. */
async function file(blob: Blob): Promise<Sight> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  if (bytes.length < 1000) return { text: new TextDecoder().decode(bytes), size: bytes.length };
  return { size: bytes.length, sum: bytes.reduce((sum, b, i) => (sum + ((i % 251) + 1) * b) % 1_000_003, 0) };
}

/** An error as all languages tell it. */
function errorOf(error: unknown): Sight {
  if (error instanceof WaggleError) {
    return { code: error.code, status: error.status, field: error.field ?? "", retryable: error.retryable };
  }
  const name = error instanceof Error ? error.name : "";
  return { code: name === "TimeoutError" ? "TIMEOUT" : `${name} ${error}` };
}

describe("conformance", () => {
  let judge: Judge;
  beforeAll(async () => {
    vi.stubGlobal("WebSocket", undefined); // streams come over HTTP
    judge = await Judge.start();
  });
  afterAll(async () => {
    await judge.stop();
    vi.unstubAllGlobals();
  });

  test.each(cases())("$name: $promise", async (c) => {
    pauses.length = 0;
    const program = new Program(judge, c, await judge.begin(c.name));
    const seen: Sight[] = [];
    for (const [i, step] of c.program.entries()) {
      const sight = await program.do(step).catch((error) => ({ error: errorOf(error) }));
      seen.push(sight);
      if ("error" in sight && !c.sees[i]?.["error"]) break;
    }
    program.close();
    expect(await judge.end(c.name, seen, pauses)).toEqual([]);
  });
});
