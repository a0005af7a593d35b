import { WaggleError } from "./errors.js";
import type { Http } from "./http.js";
import { type Frame, Link, type SocketMaker } from "./link.js";

/** Frames that refuse what was asked for. */
const refusals = new Set(["agent.error", "error.validation", "error.recovery_failed", "error.rate_limited", "system.error"]);

/**
 * The socket of what only the session protocol has: restart a step, plan again, give a plan up, solve steps. It is
 * connected while something waits for its answer.
 */
export class PlanSocket {
  private link: Link | undefined;

  constructor(
    private readonly http: Http,
    private readonly maker: SocketMaker | undefined,
  ) {}

  /** Sends a frame and resolves once the server has done what it says. */
  tell(session: string, frame: Frame): Promise<void> {
    return new Promise((done, fail) => {
      this.link ??= new Link(this.http, this.maker, {
        path: () => "/ws/session?deltas=none&echo=true&language=en_US",
        take: (f) => (f.event === "system.connected" ? "ready" : undefined),
      });
      const link = this.link;
      link.onEnd(fail);
      try {
        link.send({ ...frame, session_id: session }, (f) => {
          const outcome = f.session_id === session && reply(frame, f);
          if (!outcome) return false;
          if (outcome === true) done();
          else fail(outcome);
          queueMicrotask(() => this.rest(link));
          return true;
        });
      } catch (e) {
        fail(e);
      }
    });
  }

  private rest(link: Link): void {
    if (!link.idle || this.link !== link) return;
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
