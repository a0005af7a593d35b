import { signal } from "@preact/signals";
import type { ListedQuestion, SessionSummary } from "@waggle-dev/client";
import { client, refusedLogin } from "../app.ts";
import { onChange, soon } from "./live.ts";

/** Lists of the server follow logs with a second between two looks: after so long they have a change. */
const settled = 1600;

/** A list of the server that is read again when something has changed. */
export class List<T> {
  readonly rows = signal<readonly T[] | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  readonly more = signal<string | undefined>(undefined);
  private ended = false;
  private deep = false;
  private late = 0;
  private readonly leave: () => void;
  private readonly poke: () => void;

  constructor(
    private readonly member: string,
    private readonly path: string,
    private readonly key: (row: T) => string,
    private readonly order: (a: T, b: T) => number,
  ) {
    this.poke = soon(() => this.read());
    this.leave = onChange(() => {
      this.poke();
      clearTimeout(this.late);
      this.late = window.setTimeout(this.poke, settled);
    });
    void this.read();
  }

  /** Reads the first page. Rows of later pages stay. */
  async read(): Promise<void> {
    await this.page(undefined);
  }

  /** Reads the next page. */
  async next(): Promise<void> {
    if (this.more.value) await this.page(this.more.value);
  }

  private async page(before: string | undefined): Promise<void> {
    try {
      const path = before ? `${this.path}${this.path.includes("?") ? "&" : "?"}before=${encodeURIComponent(before)}` : this.path;
      const answer = await client.call<Record<string, unknown>>("GET", path);
      if (this.ended) return;
      const page = (answer[this.member] ?? []) as T[];
      this.error.value = undefined;
      this.deep ||= before !== undefined;
      if (before !== undefined || !this.deep) this.more.value = answer["next"] as string | undefined;
      this.rows.value = this.deep ? this.merge(page) : page;
    } catch (error) {
      if (!this.ended && !refusedLogin(error)) this.error.value = error;
    }
  }

  private merge(page: T[]): T[] {
    const all = new Map((this.rows.value ?? []).map((r) => [this.key(r), r]));
    for (const r of page) all.set(this.key(r), r);
    return [...all.values()].sort(this.order);
  }

  close(): void {
    this.ended = true;
    clearTimeout(this.late);
    this.leave();
  }
}

/** Sessions, the newest change first. */
export function sessionList(filter: { q: string; state: string }): List<SessionSummary> {
  const q = new URLSearchParams({ limit: "100" });
  if (filter.q) q.set("q", filter.q);
  if (filter.state) q.set("state", filter.state);
  return new List(
    "sessions",
    `/api/v1/sessions?${q}`,
    (s) => s.session_id,
    (a, b) => (a.updated_at < b.updated_at ? 1 : -1),
  );
}

/** Open questions, the one that expires first on top. */
export function questionList(): List<ListedQuestion> {
  return new List("questions", "/api/v1/questions?limit=100", (q) => q.id, soonest);
}

/** Orders questions by their end, then by their age. */
export function soonest(a: ListedQuestion, b: ListedQuestion): number {
  const end = (q: ListedQuestion) => (q.expires_at ? Date.parse(q.expires_at) : Number.POSITIVE_INFINITY);
  const difference = end(a) - end(b);
  return Number.isNaN(difference) || difference === 0 ? (a.asked_at < b.asked_at ? -1 : 1) : difference;
}
