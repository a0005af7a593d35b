import { closedError, WaggleError } from "./failure.js";
import type { Accepted } from "./generated/api.js";
import type { CanonicalEvent, Step } from "./generated/events.js";
import { away, type CallOptions, type Http, until } from "./http.js";
import { Watched } from "./hub.js";
import type { FollowOptions } from "./log.js";
import { Log } from "./logs.js";
import { answerOf, type Question, type Reply } from "./questions.js";
import { Run } from "./run.js";

/** How a message is to be answered. */
export interface SendOptions extends CallOptions {
  /** `chat`, the default: at once, with the help of tools. `plan`: as a plan of steps. */
  mode?: "chat" | "plan";
  /** The agent of the swarm, by its name, that answers in place of the model. It answers chats only. */
  agent?: string;
  /** Ask before a plan is carried out. */
  confirmPlan?: boolean;
  /** While another run is on: wait (the default), be refused, or stop it. */
  onBusy?: "enqueue" | "reject" | "interrupt";
  /** Limits of the run's resources. */
  budget?: Record<string, number>;
  /** Steps at once. */
  maxConcurrent?: number;
  /** Of one attempt at a step. */
  timeoutSeconds?: number;
  /** Facts that are put before the message. */
  context?: readonly { description: string; value: string }[];
  /** Of texts for people, such as `en` or `zh-CN`: of a new session. */
  language?: string;
  /** Tools that this program carries out, by their names: the model may call them in this run. The program has to run until then. */
  tools?: Readonly<Record<string, ClientTool>>;
  /** They come with the message. */
  files?: readonly FilePart[];
  /** The id of the message, 1 to 200 printable characters. Sent again with it, the message counts once. */
  id?: string;
}

/** A tool that the program which sends the message runs itself. */
export interface ClientTool {
  description: string;
  /** The JSON Schema of the arguments: an object. */
  inputSchema?: object;
  /** Runs a call. The model is told why it throws. */
  // biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own
  run: (args: any) => unknown;
}

/** A file inside of a message. Models see PNG, JPEG, GIF and WebP, and read text. */
export interface FilePart {
  /** Its media type, such as `image/png`. */
  type: string;
  /** 128 KiB for all files of a message, of which 64 KiB may be text. */
  data: Uint8Array;
  name?: string;
}

/** A file as the HTTP API takes it. */
function fileOf(f: FilePart): object {
  return { media_type: f.type, name: f.name, data: btoa(Array.from(f.data, (b) => String.fromCharCode(b)).join("")) };
}

/** A summary of a session and its runs. */
export interface SessionDetail {
  id: string;
  state: string;
  [member: string]: unknown;
}

/** At most so many messages wait here for a server that is away. */
const maxWaiting = 1024;

/**
 * A conversation that outlives its connections. Its log is read as soon as something here needs it, each event once and
 * in order; messages are sent in order, each until the server has it.
 */
export class Session extends Watched {
  private readonly runs = new Map<string, Run>();
  private readonly byRun = new Map<string, Run>();
  private queue: Promise<unknown> = Promise.resolve();
  private waiting = 0;
  /** The decisions in the log on the questions that are being answered here. */
  private readonly given = new Map<string, string>();
  /** The tools that the program carries out, by the run that may call them. */
  private readonly offers = new Map<Run, NonNullable<SendOptions["tools"]>>();

  /** For `WaggleClient`. */
  constructor(
    http: Http,
    id: string,
    after: number,
    private fresh: boolean,
    newId: () => string,
  ) {
    super(http, "session", id, after, newId);
  }

  /** Sends a message. Without a connection it waits for one. */
  send(text: string, o: SendOptions = {}): Run {
    const { mode, agent, confirmPlan, onBusy = "enqueue", budget, maxConcurrent, timeoutSeconds, context, language } = o;
    const run = this.begin(o.id ?? this.newId());
    if (o.tools) this.offers.set(run, o.tools);
    const tools = Object.entries(o.tools ?? {});
    const body = {
      id: run.id,
      content: text,
      create_session: true,
      mode,
      agent,
      confirm_plan: confirmPlan,
      on_busy: onBusy,
      budget,
      max_concurrent: maxConcurrent,
      timeout_seconds: timeoutSeconds,
      language,
      context,
      tools: tools.map(([name, t]) => ({ name, description: t.description, input_schema: t.inputSchema ?? { type: "object" } })),
      files: o.files?.map(fileOf),
    };
    this.enqueue(run, body, until(this.signal, o));
    return run;
  }

  /** Has steps carried out without planning. */
  solve(steps: Step[], o: Pick<SendOptions, "maxConcurrent" | "timeoutSeconds" | "id"> & CallOptions = {}): Run {
    const { id = this.newId(), maxConcurrent, timeoutSeconds } = o;
    const run = this.begin(id);
    const body = { id, create_session: true, mode: "steps", steps, max_concurrent: maxConcurrent, timeout_seconds: timeoutSeconds };
    this.enqueue(run, body, until(this.signal, o));
    return run;
  }

  /** The run of a message. One that is sent again while its run is on has the same. */
  private begin(id: string): Run {
    const known = this.runs.get(id);
    if (known) return known;
    const run: Run = new Run(id, (reason, o) => this.cancelRun(run, reason, o));
    this.runs.set(id, run);
    return run;
  }

  private enqueue(run: Run, body: object, signal: AbortSignal): void {
    if (this.signal.aborted || this.waiting >= maxWaiting) {
      this.runs.delete(run.id);
      run.broken(this.signal.aborted ? closedError() : new WaggleError("QUEUE_FULL", "too many messages wait for the server"));
      return;
    }
    const attempt = () => this.http.json<Accepted>(`${this.path}/messages`, { method: "POST", body, signal });
    this.waiting++;
    this.queue = this.queue.then(async () => {
      try {
        const accepted = await this.http.persist(() => attempt().catch((e) => this.failing(e)), signal);
        this.fresh = false;
        run.runId = accepted.run_id;
        run.taken();
        await this.join(run, accepted);
        this.read();
      } catch (error) {
        this.runs.delete(run.id);
        run.broken(this.signal.aborted ? closedError() : ofOptions(error));
      } finally {
        this.waiting--;
      }
    });
  }

  /** Follows a run. The reader may have passed its events: then its message was sent before, here or by another process. */
  private async join(run: Run, { run_id: runId = "", seq = 0 }: Accepted): Promise<void> {
    if (this.runs.get(run.id) !== run || this.byRun.has(runId)) return; // the reader has met its message since then
    while (this.seq >= seq) {
      const at = this.seq;
      const events: CanonicalEvent[] = [];
      for await (const e of new Log(this.http, this.signal, "session", this.id).events({ run: runId })) events.push(e);
      if (this.seq !== at) continue; // the reader has passed events since then
      this.byRun.set(runId, run);
      for (const e of events) if (e.sequence <= at) this.hand(run, e);
      return;
    }
    this.byRun.set(runId, run);
  }

  /** Hands an event to its run. */
  private hand(run: Run, e: CanonicalEvent): void {
    if (!run.take(e)) return;
    this.offers.delete(run);
    this.byRun.delete(run.runId ?? "");
    this.runs.delete(run.id);
  }

  /** Watchers of the connection are told why a message is not sent yet. */
  private failing(error: unknown): never {
    if (isAway(error)) this.change({ error });
    throw error;
  }

  /** The events of a session whose first message is under way come once it is there. */
  protected override async *stream(o: FollowOptions): AsyncGenerator<CanonicalEvent, void, undefined> {
    const sending = this.waiting > 0 ? this.queue : undefined;
    if (sending && this.fresh) await settled(sending, o.signal);
    if (o.signal?.aborted) return;
    try {
      yield* super.stream(o);
    } catch (error) {
      if (!sending || !this.notYet(error)) throw error;
      await settled(sending, o.signal);
      yield* super.stream(o);
    }
  }

  /** Answers a question. Rejects with `INPUT_ANSWERED` if somebody else's answer counts. */
  async answer(question: Question | string, reply: Reply | boolean, o: CallOptions = {}): Promise<void> {
    const id = typeof question === "string" ? question : question.id;
    const body = answerOf(reply);
    this.given.set(id, "");
    try {
      await this.reply(question, body, until(this.signal, o));
    } catch (error) {
      // The run may be over, and the session closed, before the server has said so.
      if (!this.signal.aborted || this.given.get(id) !== body.decision) throw error;
    } finally {
      this.given.delete(id);
    }
  }

  /** The tool of the program that a question calls. */
  private offer(run: Run | undefined, scope: string, tool: string | undefined): ClientTool | undefined {
    return run && scope === "client_tool" ? this.offers.get(run)?.[tool ?? ""] : undefined;
  }

  /** The calls of the program's own tools are no decisions for people. */
  protected override isOwn({ run, scope, data }: Question): boolean {
    return this.offer(this.byRun.get(run ?? ""), scope, "tool" in data ? data.tool : undefined) !== undefined;
  }

  /** Carries a call of the program's own tools out. The server takes the first result. */
  private called(run: Run, e: CanonicalEvent & { type: "input.requested" }): void {
    const { scope, tool, arguments: args, input_id: id, digest = "" } = e.data;
    const own = this.offer(run, scope, tool);
    if (!own) return;
    void Promise.resolve()
      .then(() => own.run(args ?? {}))
      .then((v) => ({ decision: "approve" as const, result: typeof v === "string" ? v : (JSON.stringify(v) ?? "") }))
      .catch((error) => {
        const feedback = error instanceof Error ? error.message : String(error);
        this.http.logger?.info(`the tool ${tool} of this program failed: ${feedback}`);
        return { decision: "reject" as const, feedback };
      })
      .then((answer) => this.reply(id, { digest, ...answer }))
      .catch((error) => {
        this.http.logger?.warn(`the result of the tool ${tool} was refused: ${error}`);
        this.change({ error });
      });
  }

  /** Stops the active run; the session stays usable. */
  async cancel(o: CallOptions = {}): Promise<void> {
    await this.persist("POST", "/cancel", o);
  }

  private async cancelRun(run: Run, reason: string | undefined, o: CallOptions): Promise<void> {
    const signal = until(this.signal, o);
    await run.accepted({ signal });
    const request = { method: "POST", body: { run_id: run.runId, reason }, signal };
    await this.http.persist(() => this.http.json(`${this.path}/cancel`, request), signal);
  }

  /** Stops one step of the run that is on. */
  cancelStep(step: string, reason?: string, o: CallOptions = {}): Promise<void> {
    return this.act(`/runs/last/steps/${encodeURIComponent(step)}/cancel`, { reason }, o);
  }

  /** Carries a step out again that has failed or was cancelled, also after the end of the run. */
  restartStep(step: string, reason?: string, o: CallOptions = {}): Promise<void> {
    return this.act(`/runs/last/steps/${encodeURIComponent(step)}/restart`, { reason }, o);
  }

  /** Gives up a plan whose steps have not begun. */
  cancelPlan(reason?: string, o: CallOptions = {}): Promise<void> {
    return this.act("/plan/cancel", { reason }, o);
  }

  /** Has the plan made again, for another question or the same. */
  replan(question?: string, o: CallOptions = {}): Promise<void> {
    return this.act("/replan", { question }, o);
  }

  /** Resolves once the log has what was done. It is done once, however often the request is sent. */
  private act(rest: string, of: object, o: CallOptions): Promise<void> {
    const signal = until(this.signal, o);
    const body = { ...of, id: this.newId() };
    return this.http.persist(() => this.http.json<void>(this.path + rest, { method: "POST", body, signal }), signal);
  }

  /** A file that a message has brought along, as its event names it (`data.files`). */
  file(f: { object: { digest: string } }, o: CallOptions = {}): Promise<Blob> {
    return this.http.file(`${this.path}/files/${f.object.digest}`, until(this.signal, o));
  }

  /** The session and its runs. */
  show(o: CallOptions = {}): Promise<SessionDetail> {
    return this.persist("GET", "", o);
  }

  /** Removes the session with all its events for good. Reports whether that is done already. */
  async delete(o: CallOptions = {}): Promise<boolean> {
    const signal = until(this.signal, o);
    const answer = await this.http.persist(() => this.http.request(this.path, { method: "DELETE", signal }), signal);
    return answer.status === 204;
  }

  /** The signed state of the session, for `client.sessions.import`. */
  export(o: CallOptions = {}): Promise<unknown> {
    return this.persist("GET", "/state", o);
  }

  private persist<T>(method: string, rest: string, o: CallOptions): Promise<T> {
    const signal = until(this.signal, o);
    return this.http.persist(() => this.http.json<T>(this.path + rest, { method, signal }), signal);
  }

  /** There is nothing to read before the first message. */
  protected override read(): void {
    if (!this.fresh) super.read();
  }

  protected override take(e: CanonicalEvent): void {
    if (e.type === "input.answered" && this.given.has(e.data.input_id)) this.given.set(e.data.input_id, e.data.decision);
    const d = e.data as { message_id?: string; run_id?: string };
    let run = d.run_id === undefined ? undefined : this.byRun.get(d.run_id);
    if (e.type === "message.received") {
      run = this.runs.get(e.data.message_id);
      if (run) {
        run.runId = e.data.run_id;
        this.byRun.set(e.data.run_id, run);
      }
    } else if (e.type === "message.refused") {
      this.runs.get(e.data.message_id)?.broken(new WaggleError(e.data.code, e.data.message, { detail: e.data }));
      this.runs.delete(e.data.message_id);
    }
    if (run && e.type === "input.requested") this.called(run, e);
    if (run) this.hand(run, e);
  }

  protected override end(error: unknown): void {
    for (const run of this.runs.values()) run.broken(error ?? closedError());
    this.runs.clear();
    this.byRun.clear();
  }
}

/** Names a refused option of `send` as the program does. */
function ofOptions(error: unknown): unknown {
  if (!(error instanceof WaggleError) || !error.field?.includes("_")) return error;
  const own = (text: string) =>
    text.replaceAll(error.field as string, (name) => name.replace(/_([a-z])/g, (_, c: string) => c.toUpperCase()));
  return new WaggleError(error.code, own(error.message), { status: error.status, field: own(error.field), detail: error.detail });
}

/** Waits for the end of a promise, which does not fail, or for the signal. */
async function settled(promise: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  await Promise.race([promise, new Promise((go) => signal?.addEventListener("abort", go, { once: true }))]);
}

/** Whether an error says that the server is away. */
export function isAway(error: unknown): boolean {
  return error instanceof WaggleError && away(error);
}
