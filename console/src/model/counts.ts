import { type ReadonlySignal, signal } from "@preact/signals";
import type { SessionCounts, SessionSummary } from "@waggle-dev/client";
import { client, refusedLogin } from "../app.ts";
import { onChange, soon } from "./live.ts";

/** Lists of the server follow logs with a second between two looks: after so long they have a change. */
const settled = 1600;

/** Something of the server that is read again when something has changed, and once more when the server has followed. */
export class Followed<T> {
  private readonly answer = signal<T | undefined>(undefined);
  private ended = false;
  private late = 0;
  private readonly leave: () => void;

  constructor(
    private readonly path: () => string,
    /** Whether a change of this log matters; undefined: each does. */
    log?: string,
  ) {
    const poke = soon(() => this.read());
    this.leave = onChange((e) => {
      if (e && log !== undefined && !(e.subject ?? "").endsWith(log)) return;
      poke();
      clearTimeout(this.late);
      this.late = window.setTimeout(poke, settled);
    });
    void this.read();
  }

  /** What the server has answered; undefined before it has. */
  get value(): ReadonlySignal<T | undefined> {
    return this.answer;
  }

  private async read(): Promise<void> {
    try {
      const answer = await client.call<T>("GET", this.path());
      if (!this.ended) this.answer.value = answer;
    } catch (error) {
      refusedLogin(error); // what was known stays
    }
  }

  close(): void {
    this.ended = true;
    clearTimeout(this.late);
    this.leave();
  }
}

/** How many sessions there are in each state; of those that have changed since a time, if one is given. */
export function sessionCounts(since?: () => Date): Followed<SessionCounts> {
  return new Followed(() => `/api/v1/session-counts${since ? `?since=${encodeURIComponent(since().toISOString())}` : ""}`);
}

/** A session as lists show it. */
export function sessionSummary(id: string): Followed<SessionSummary> {
  return new Followed(() => `/api/v1/sessions/${encodeURIComponent(id)}/summary`, `.session.${id}`);
}

/** A number of sessions: "12", or "2000+" if not all were looked at. Empty for none. */
export function countOf(c: SessionCounts | undefined, state: string): string {
  const n = state === "" ? c?.searched : c?.states.find((s) => s.state === state)?.sessions;
  return n ? `${n}${c?.more ? "+" : ""}` : "";
}
