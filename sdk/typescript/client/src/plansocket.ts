import { WaggleError } from "./errors.js";
import type { Http } from "./http.js";
import { type Frame, Link } from "./link.js";

/** Frames that refuse what was asked for. */
const refusals = new Set(["agent.error", "error.validation", "error.recovery_failed", "error.rate_limited", "system.error"]);

/** A frame that was repeated and is not answered for so long: the server does not repeat its answers. */
const lostAnswer = 10_000;

/**
 * The socket of what only the session protocol has: restart a step, plan again, give a plan up, solve steps. It is
 * connected while something waits for its answer.
 */
export class PlanSocket {
  private link: Link | undefined;
  private waiting = new Set<() => void>();

  constructor(private readonly http: Http) {}

  /**
   * Sends a frame and resolves once the server has done what it says, or `done` says so. A frame that had to be
   * repeated gets no answer: without `done` it is rejected as `UNANSWERED`.
   */
  async tell(session: string, frame: Frame, done: Promise<unknown>): Promise<void> {
    this.link ??= new Link(this.http, {
      path: () => "/ws/session?deltas=none&echo=true&language=en_US",
      take: (f) => {
        if (f.event !== "system.connected") return undefined;
        for (const repeated of this.waiting) repeated();
        return "ready";
      },
    });
    const link = this.link;
    let over = false;
    let connections = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let repeated: () => void = () => {};
    try {
      await new Promise<void>((ok, fail) => {
        done.then(() => ok(), fail);
        repeated = () => {
          if (++connections !== 2) return;
          const lost = new WaggleError("UNANSWERED", "the line broke before the answer; the log says whether it was done", {
            retryable: true,
          });
          timer = setTimeout(() => fail(lost), lostAnswer);
        };
        this.waiting.add(repeated);
        link.onEnd(fail);
        link.send({ ...frame, session_id: session }, (f) => {
          const outcome = !over && f.session_id === session && reply(frame, f);
          if (outcome === true) ok();
          else if (outcome) fail(outcome);
          return over || Boolean(outcome);
        });
      });
    } finally {
      over = true;
      clearTimeout(timer);
      this.waiting.delete(repeated);
      this.rest(link);
    }
  }

  private rest(link: Link): void {
    if (this.waiting.size > 0 || this.link !== link) return;
    this.link = undefined;
    link.close();
  }

  /** Ends the connection. */
  close(): void {
    this.link?.close();
    this.link = undefined;
  }
}

/** What a frame of the server says of one that was sent: done, refused, or nothing. */
function reply(sent: Frame, f: Frame): boolean | WaggleError {
  const m = f.metadata ?? {};
  if (f.event === sent.event && m.message_id === sent.id) return true;
  if (f.event === "system.notice" && m.ok !== undefined && `user.${m.action}` === sent.event) {
    if (m.ok) return true;
    return new WaggleError("REFUSED", String(f.content?.message ?? "The server refused it."), { detail: f });
  }
  if (f.seq === undefined && refusals.has(f.event)) {
    const code = m.error_type || m.error_code || "REFUSED";
    return new WaggleError(code, String(f.content?.message ?? f.content ?? code), { detail: f });
  }
  return false;
}
