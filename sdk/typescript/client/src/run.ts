import { closedError, WaggleError } from "./failure.js";
import type { CanonicalEvent, Usage } from "./generated/events.js";
import { bounded, type CallOptions } from "./http.js";

/** What came of a message. */
export interface Answer {
  text: string;
  /** Of a planned run: `success`, `partial_success`, `rejected`, `cancelled`, `timeout`; else `success`. */
  outcome: string;
  usage: Usage | undefined;
  durationMs: number;
  /** Why the answer is not complete: `length`, `filtered`, `refused`, `other`. */
  stopReason?: string;
}

/** A list that grows and whose readers wait for the rest. */
class Feed<T> {
  readonly items: T[] = [];
  private ended = false;
  private error: unknown;
  private wake: (() => void)[] = [];

  push(item: T): void {
    this.items.push(item);
    this.tell();
  }

  end(error?: unknown): void {
    if (this.ended) return;
    this.ended = true;
    this.error = error;
    this.tell();
  }

  async *read(): AsyncGenerator<T, void, undefined> {
    for (let i = 0; ; i++) {
      while (i >= this.items.length) {
        if (this.error !== undefined) throw this.error;
        if (this.ended) return;
        await new Promise<void>((go) => this.wake.push(go));
      }
      yield this.items[i] as T;
    }
  }

  private tell(): void {
    const wake = this.wake;
    this.wake = [];
    for (const go of wake) go();
  }
}

/**
 * All work that answers one message. Iterating gives its events from the first one on, any number of times; it ends
 * with the event that ends the run. A run keeps its events for as long as the program keeps the run.
 */
export class Run implements AsyncIterable<CanonicalEvent> {
  /** The run's own id, once the message is accepted. */
  runId: string | undefined;
  private readonly feed = new Feed<CanonicalEvent>();
  private readonly acceptance: Promise<void>;
  private readonly answer: Promise<Answer>;
  private accept: () => void = () => {};
  private refuse: (e: unknown) => void = () => {};
  private settle: (a: Answer) => void = () => {};
  private fail: (e: unknown) => void = () => {};

  constructor(
    /** The id of the message: sent again with it, the message counts once. */
    readonly id: string,
    private readonly stop: (reason: string | undefined, o: CallOptions) => Promise<void>,
  ) {
    this.acceptance = new Promise((ok, no) => {
      this.accept = ok;
      this.refuse = no;
    });
    this.answer = new Promise((ok, no) => {
      this.settle = ok;
      this.fail = no;
    });
    this.acceptance.catch(() => {});
    this.answer.catch(() => {});
  }

  [Symbol.asyncIterator](): AsyncGenerator<CanonicalEvent, void, undefined> {
    return this.feed.read();
  }

  /** Waits until the log has the message. Rejects if it was refused. */
  accepted(o: CallOptions = {}): Promise<void> {
    return bounded(this.acceptance, o);
  }

  /** The answer. Rejects with the error with which the run has failed, or with `RUN_CANCELLED`. The run continues after a time-out. */
  result(o: CallOptions = {}): Promise<Answer> {
    return bounded(this.answer, o);
  }

  /** The text of the answer so far, again with each piece. It may become shorter: another worker begins it anew. */
  async *text(): AsyncGenerator<string, void, undefined> {
    let id = "";
    let text = "";
    for await (const e of this) {
      const d = e.data as { message_id?: string; stage?: string };
      if (d.stage && d.stage !== "aggregation") continue;
      if (e.type === "message.delta") text = (id === e.data.message_id ? text : "") + e.data.text;
      else if (e.type === "message.completed" && e.data.content) text = e.data.content;
      else if (e.type === "message.discarded" && id === e.data.message_id) text = "";
      else if (e.type === "run.completed" && e.data.content !== text) text = e.data.content;
      else continue;
      id = d.message_id ?? id;
      yield text;
    }
  }

  /** The pieces of the answer as they come. After a piece that begins the answer anew, `restarted` is true. */
  async *deltas(): AsyncGenerator<{ text: string; restarted: boolean }, void, undefined> {
    let before = "";
    for await (const text of this.text()) {
      const restarted = !text.startsWith(before);
      const piece = restarted ? text : text.slice(before.length);
      before = text;
      if (piece || restarted) yield { text: piece, restarted };
    }
  }

  /** Stops the run. Its events say what came of it. */
  cancel(reason?: string, o: CallOptions = {}): Promise<void> {
    return this.stop(reason, o);
  }

  /** The server has taken the message. */
  taken(): void {
    this.accept();
  }

  /** Takes an event of the run, and reports whether it is the last one. */
  take(e: CanonicalEvent): boolean {
    this.accept();
    this.feed.push(e);
    switch (e.type) {
      case "run.completed":
        this.settle({
          text: e.data.content,
          outcome: e.data.outcome || "success",
          usage: e.data.usage,
          durationMs: e.data.duration_ms,
          ...(e.data.stop_reason ? { stopReason: e.data.stop_reason } : {}),
        });
        break;
      case "run.failed":
        this.fail(new WaggleError(e.data.code, e.data.message, { retryable: e.data.retryable, detail: e.data }));
        break;
      case "run.cancelled":
        this.fail(new WaggleError("RUN_CANCELLED", "The run was stopped.", { detail: e.data, retryable: false }));
        break;
      default:
        return false;
    }
    this.feed.end();
    return true;
  }

  /** The message was refused, or the run cannot be followed any more. */
  broken(error: unknown = closedError()): void {
    this.refuse(error);
    this.fail(error);
    this.feed.end(error);
  }
}
