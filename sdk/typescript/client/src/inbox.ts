import type { QuestionOutcome, Question as Summary } from "./generated/api.js";
import { type CallOptions, type Http, until } from "./http.js";
import type { ListOptions } from "./pages.js";
import { answerOf, type Reply } from "./questions.js";

/** Which questions are listed. */
export interface QuestionFilter extends ListOptions {
  /** Of what kind. */
  scope?: "plan" | "tool" | "budget" | "agent" | "client_tool";
  /** `open`, the default, the newest first. */
  state?: "open" | "answered" | "expired" | "withdrawn";
  /** Asked in the logs of one kind. */
  kind?: "session" | "member" | "task";
  /** Asked in the log with this id. */
  log?: string;
}

/** The questions of all logs that the principal may see: an inbox. */
export class Inbox {
  /** For `WaggleClient`. */
  constructor(
    private readonly http: Http,
    private readonly signal: AbortSignal,
    private readonly newId: () => string,
    /** Questions, over all pages. */
    readonly list: (f?: QuestionFilter) => AsyncGenerator<Summary, void, undefined>,
  ) {}

  /**
   * Answers a question, by its `id` in the list. It is sent with an id until the server has it, and counts once. Rejects with
   * `INPUT_ANSWERED` if somebody else's answer counts.
   */
  answer(question: Summary | string, reply: Reply | boolean, o: CallOptions = {}): Promise<QuestionOutcome> {
    const signal = until(this.signal, o);
    const { id, digest } = typeof question === "string" ? { id: question, digest: undefined } : question;
    const body = { digest, ...answerOf(reply), id: this.newId() };
    const path = `/api/v1/questions/${encodeURIComponent(id)}/answer`;
    return this.http.persist(() => this.http.json<QuestionOutcome>(path, { method: "POST", body, signal }), signal);
  }
}
