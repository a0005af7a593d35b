import { type ReadonlySignal, signal } from "@preact/signals";
import type { SessionCounts, SessionSummary } from "@waggle-dev/client";
import { client, refusedLogin } from "../app.ts";
import { queryOf } from "./filter.ts";
import { follow } from "./live.ts";

/** Something of the server that is read again when something has changed, and once more when the server has followed. */
export class Followed<T> {
  private readonly last = signal<T | undefined>(undefined);
  private ended = false;
  private readonly leave: () => void;

  constructor(
    private readonly path: () => string,
    /** Whether a change of this log matters; undefined: each does. */
    log?: string,
  ) {
    this.leave = follow(
      () => this.read(),
      (e) => log === undefined || (e.subject ?? "").endsWith(log),
    );
  }

  /** What the server has answered; undefined before it has. */
  get answer(): ReadonlySignal<T | undefined> {
    return this.last;
  }

  private async read(): Promise<void> {
    try {
      const answer = await client.call<T>("GET", this.path());
      if (!this.ended) this.last.value = answer;
    } catch (error) {
      refusedLogin(error); // what was known stays
    }
  }

  close(): void {
    this.ended = true;
    this.leave();
  }
}

/** How many sessions that a filter lets pass there are in each state. */
export function sessionCounts(filter = ""): Followed<SessionCounts> {
  return new Followed(() => `/api/v1/session-counts?${queryOf(filter)}`);
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
