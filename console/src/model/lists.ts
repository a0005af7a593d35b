import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { CanonicalEvent, ListedQuestion, SessionSummary, TeamView } from "@waggle-dev/client";
import { client, refusedLogin } from "../app.ts";
import { ended } from "./ended.ts";
import { onChange, soon } from "./live.ts";

/** Lists of the server follow logs with a second between two looks: after so long they have a change. */
const settled = 1600;

/** A list of the server that is read again when something has changed. */
export class List<T> {
  readonly rows: ReadonlySignal<readonly T[] | undefined>;
  readonly error = signal<unknown>(undefined);
  readonly more = signal<string | undefined>(undefined);
  private readonly all = signal<readonly T[] | undefined>(undefined);
  /** How many rows the server has held a filter against. */
  readonly searched = signal(0);
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
    /** What an announcement changes at once, and which of two states of a row is the later one. */
    private readonly live?: { take: (rows: readonly T[], e: CanonicalEvent) => readonly T[]; age: (row: T) => number },
    /** The keys of rows that are not shown, whatever the server says. */
    hidden?: ReadonlySignal<ReadonlySet<string>>,
  ) {
    this.rows = computed(() => (hidden?.value.size ? this.all.value?.filter((r) => !hidden.value.has(key(r))) : this.all.value));
    this.poke = soon(() => this.read());
    this.leave = onChange((e) => {
      if (e && live && this.all.value) this.all.value = live.take(this.all.value, e);
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
      const searched = Number(answer["searched"] ?? 0);
      if (before !== undefined) this.searched.value += searched;
      else if (!this.deep) this.searched.value = searched;
      if (before !== undefined || !this.deep) this.more.value = answer["next"] as string | undefined;
      this.all.value = this.merge(page);
    } catch (error) {
      if (!this.ended && !refusedLogin(error)) this.error.value = error;
    }
  }

  private merge(page: T[]): T[] {
    const old = new Map((this.all.value ?? []).map((r) => [this.key(r), r]));
    const newer = page.map((r) => {
      const known = old.get(this.key(r));
      return known !== undefined && this.live && this.live.age(known) > this.live.age(r) ? known : r;
    });
    if (!this.deep) return newer;
    for (const r of newer) old.set(this.key(r), r);
    return [...old.values()].sort(this.order);
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
  return new List("sessions", `/api/v1/sessions?${q}`, (s) => s.session_id, newestChange, { take: announced, age: (s) => s.last_seq });
}

const newestChange = (a: SessionSummary, b: SessionSummary) => (a.updated_at < b.updated_at ? 1 : -1);

/** Other ends of a run that is completed, by its outcome. */
const outcomes: Record<string, string> = {
  partial_success: "partly",
  rejected: "cancelled",
  cancelled: "cancelled",
  timeout: "failed",
  failed: "failed",
};

const states: Partial<Record<CanonicalEvent["type"], string>> = {
  "message.received": "running",
  "run.started": "running",
  "run.completed": "completed",
  "run.failed": "failed",
  "run.cancelled": "cancelled",
  "input.requested": "waiting",
  "input.answered": "running",
};

/** The sessions after an announcement: the list of the server follows logs with a second between two looks. */
export function announced(rows: readonly SessionSummary[], e: CanonicalEvent): readonly SessionSummary[] {
  const [, kind, ...id] = (e.subject ?? "").split(".");
  const at = kind === "session" ? rows.findIndex((s) => s.session_id === id.join(".")) : -1;
  const row = rows[at];
  if (!row || row.last_seq >= e.sequence) return rows;
  if (e.type === "session.deleted") return rows.toSpliced(at, 1);
  const state = (e.type === "run.completed" && outcomes[e.data.outcome ?? ""]) || states[e.type];
  const changed: SessionSummary = { ...row, last_seq: e.sequence, last_event: e.type, updated_at: e.time, ...(state ? { state } : {}) };
  if (e.type === "message.received" && !row.question) changed.question = e.data.content;
  if (e.type === "run.started") changed.runs = (row.runs ?? 0) + 1;
  return rows.with(at, changed).toSorted(newestChange);
}

/** Open questions, the one that expires first on top. */
export function questionList(): List<ListedQuestion> {
  return new List("questions", "/api/v1/questions?limit=100", (q) => q.id, soonest, undefined, ended);
}

/** Teams, the newest first. */
export function teamList(): List<TeamView> {
  return new List(
    "teams",
    "/api/v1/teams?limit=50",
    (team) => team.team_id,
    (a, b) => (a.created_at < b.created_at ? 1 : -1),
  );
}

/** Orders questions by their end, then by their age. */
export function soonest(a: ListedQuestion, b: ListedQuestion): number {
  const end = (q: ListedQuestion) => (q.expires_at ? Date.parse(q.expires_at) : Number.POSITIVE_INFINITY);
  const difference = end(a) - end(b);
  return Number.isNaN(difference) || difference === 0 ? (a.asked_at < b.asked_at ? -1 : 1) : difference;
}
