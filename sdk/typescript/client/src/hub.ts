import { abortError, WaggleError } from "./failure.js";
import type { QuestionAnswer } from "./generated/api.js";
import type { CanonicalEvent } from "./generated/events.js";
import type { Http } from "./http.js";
import { type FollowOptions, follow } from "./log.js";
import { type Question, Questions } from "./questions.js";

/** Whether a log is being read, and why it is not any more. */
export interface ConnectionState {
  connected: boolean;
  /** The last failure. */
  error: unknown;
  /** Whether it comes back. */
  ended: boolean;
}

/** The event that ends what a log is of. */
const lastEvent = { session: "session.closed", team: "team.closed", task: "task.finished" };

/** A log that is read once for all that watch it here: listeners, the open questions, and what the subclass makes of it. */
export abstract class Watched {
  private readonly listeners = new Set<(e: CanonicalEvent) => void>();
  private readonly watchers = new Set<(s: ConnectionState) => void>();
  private readonly askers = new Set<(open: Question[]) => void>();
  private readonly book = new Questions();
  /** The questions that are answered here, and those whose answer was refused. */
  private readonly answered = new Map<string, "given" | "refused">();
  private readonly leave = new AbortController();
  private reading = false;
  private state: ConnectionState = { connected: false, error: undefined, ended: false };
  /** The sequence of the last event that has been handed on. */
  seq: number;

  protected constructor(
    protected readonly http: Http,
    /** The kind and the id of the log. */
    readonly kind: "session" | "team" | "task",
    readonly id: string,
    after: number,
    protected readonly newId: () => string,
  ) {
    this.seq = after;
  }

  /** Its place in the HTTP API. */
  protected get path(): string {
    return `/api/v1/${this.kind}s/${encodeURIComponent(this.id)}`;
  }

  /** Is aborted with `close()`. */
  get signal(): AbortSignal {
    return this.leave.signal;
  }

  /** Hands each further event to the listener, in order, until the returned function is called. */
  on(listener: (e: CanonicalEvent) => void): () => void {
    return this.add(this.listeners, listener);
  }

  /** Tells the listener whether the log is being read, now and when that changes. */
  onConnection(listener: (s: ConnectionState) => void): () => void {
    listener(this.state);
    return this.add(this.watchers, listener);
  }

  /** Hands the list of the open questions to the listener, now and when it changes. */
  onQuestions(listener: (open: Question[]) => void): () => void {
    listener(this.questions);
    return this.add(this.askers, listener);
  }

  /** The open questions, the oldest first, as far as the log has been read. */
  get questions(): Question[] {
    return this.book.list.filter((q) => this.answered.get(q.id) !== "given" && !this.isOwn(q));
  }

  /** Whether the program answers a question itself. */
  protected isOwn(_: Question): boolean {
    return false;
  }

  /**
   * Reads the log apart from the other readers: not reading holds the server back. It ends with the event that ends the
   * session, the team or the task; the reason of a signal that is aborted is thrown.
   */
  async *events(o: FollowOptions = {}): AsyncGenerator<CanonicalEvent, void, undefined> {
    for await (const e of this.stream(o)) {
      yield e;
      if (e.type === lastEvent[this.kind]) return;
    }
    if (o.signal?.aborted) throw abortError(o.signal);
  }

  /** The events until their end, or until the signal is aborted. */
  protected async *stream(o: FollowOptions): AsyncGenerator<CanonicalEvent, void, undefined> {
    for await (const e of follow(this.http, `${this.path}/stream`, o)) {
      yield e;
      if (e.type === lastEvent[this.kind]) return;
    }
  }

  /** Gives an answer: the question leaves the list at once. It comes back, once, if the server refuses the answer for what it is. */
  private async answering<T>(id: string, give: () => Promise<T>): Promise<T> {
    const again = this.answered.has(id);
    if (!again) {
      this.answered.set(id, "given");
      this.ask();
    }
    try {
      return await give();
    } catch (error) {
      const over = error instanceof WaggleError && [404, 409, 410].includes(error.status);
      if (!over && !again) {
        this.answered.set(id, "refused");
        this.ask();
      }
      throw error;
    }
  }

  /** Answers a question, in the inbox of all. The answer has an id, so a repeated request counts once: browsers repeat requests by themselves. */
  protected reply(question: Question | string, answer: QuestionAnswer, signal = this.signal): Promise<void> {
    const q = typeof question === "string" ? this.book.list.find((o) => o.id === question) : question;
    const id = typeof question === "string" ? question : question.id;
    const inbox = q?.inbox ?? (id.includes(".") ? id : `${this.kind}.${this.id}.${id}`);
    const path = `/api/v1/questions/${encodeURIComponent(inbox)}/answer`;
    const body = { ...(q && "digest" in q.data && { digest: q.data.digest }), ...answer, id: this.newId() };
    return this.answering(id, () => this.http.persist(() => this.http.json<void>(path, { method: "POST", body, signal }), signal));
  }

  private ask(): void {
    for (const f of this.askers) f(this.questions);
  }

  /** Ends the connection. What goes on in the log goes on. */
  close(): void {
    this.leave.abort();
    this.change({ connected: false, ended: true });
    this.end(undefined);
  }

  /** Begins to read, unless it does already. */
  protected read(): void {
    if (this.reading || this.leave.signal.aborted) return;
    this.reading = true;
    void this.loop();
  }

  private async loop(): Promise<void> {
    try {
      for await (const e of this.stream({
        after: this.seq,
        signal: this.leave.signal,
        onConnection: (connected, error) => this.change({ connected, error }),
      })) {
        this.seq = e.sequence;
        if (this.book.take(e)) this.ask();
        this.take(e);
        for (const f of this.listeners) f(e);
      }
      if (this.leave.signal.aborted) return;
      this.change({ connected: false, ended: true });
      this.end(undefined);
    } catch (error) {
      this.reading = false;
      if (this.notYet(error)) return;
      this.change({ connected: false, error, ended: true });
      this.end(error);
    }
  }

  /** Whether the log is only not there yet: then a message begins it. */
  protected notYet(error: unknown): boolean {
    return error instanceof WaggleError && error.code === "SESSION_NOT_FOUND" && this.seq === 0;
  }

  /** Takes an event. */
  protected take(_: CanonicalEvent): void {}

  /** The log is not read any more. */
  protected end(_: unknown): void {}

  /** Notes whether the log is read, and the last failure. */
  protected change(s: Partial<ConnectionState>): void {
    this.state = { ...this.state, ...s };
    for (const f of this.watchers) f(this.state);
  }

  private add<T>(set: Set<T>, item: T): () => void {
    set.add(item);
    this.read();
    return () => set.delete(item);
  }
}
