import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { CanonicalEvent, ListedQuestion, SessionSummary, TeamView } from "@waggle-dev/client";
import { client, refusedLogin } from "../app.ts";
import { soonest } from "../fold/inbox.ts";
import { ended } from "./ended.ts";
import { queryOf } from "./filter.ts";
import { follow, onChange } from "./live.ts";

/** A session that the server's index still lacks after so long is gone. */
const indexed = 15_000;

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
  private readonly leave: () => void;

  constructor(
    private readonly member: string,
    private readonly path: string,
    private readonly key: (row: T) => string,
    private readonly order: (a: T, b: T) => number,
    /** What an announcement changes at once, and which of two states of a row is the later one. */
    private readonly live?: { take: (rows: readonly T[], e: CanonicalEvent) => readonly T[]; age: (row: T) => number },
    /** What this page knows better than the server, which learns of it a moment later. */
    amend?: (rows: readonly T[]) => readonly T[],
  ) {
    this.rows = computed(() => this.all.value && (amend ? amend(this.all.value) : this.all.value));
    const deaf = onChange((e) => {
      if (e && live && this.all.value) this.all.value = live.take(this.all.value, e);
    });
    const still = follow(() => this.read());
    this.leave = () => {
      deaf();
      still();
    };
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
    this.leave();
  }
}

/** Sessions, the newest change first. */
export function sessionList(filter: { q: string; state: string }): List<SessionSummary> {
  const q = queryOf(filter.q);
  q.set("limit", "100");
  if (filter.state) q.set("state", filter.state);
  const all = filter.q === "" && filter.state === "";
  const live = { take: announced, age: (s: SessionSummary) => s.last_seq };
  return new List(
    "sessions",
    `/api/v1/sessions?${q}`,
    (s) => s.session_id,
    newestChange,
    live,
    (rows) => withSent(rows, all),
  );
}

/** First messages that this page has sent: by session. */
const sent = signal<ReadonlyMap<string, { question: string; at: string }>>(new Map());

/** Remembers the first message of a session, until the list has it. */
export function remember(session: string, question: string): void {
  sent.value = new Map([...sent.value, [session, { question, at: new Date().toISOString() }]]);
}

/** Sessions with the first messages that the server's index does not have yet. `all`: those that it lacks are added. */
function withSent(rows: readonly SessionSummary[], all: boolean): readonly SessionSummary[] {
  if (sent.value.size === 0) return rows;
  const state = "running";
  const known = new Set(rows.map((r) => r.session_id));
  const some = rows.map((r) => {
    const first = r.question ? undefined : sent.value.get(r.session_id);
    return first ? { ...r, question: first.question, state, runs: Math.max(1, r.runs ?? 0) } : r;
  });
  if (!all) return some;
  const missing = [...sent.value].filter(([id, m]) => !known.has(id) && Date.now() - Date.parse(m.at) < indexed);
  const row = ([session_id, { question, at }]: (typeof missing)[number]): SessionSummary => ({
    session_id,
    question,
    state,
    runs: 1,
    last_seq: 1,
    last_event: "message.received",
    status: "open",
    created_at: at,
    updated_at: at,
  });
  return [...missing.map(row), ...some].toSorted(newestChange);
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
  return new List(
    "questions",
    "/api/v1/questions?limit=100",
    (q) => q.id,
    soonest,
    undefined,
    (rows) => rows.filter((q) => !ended.value.has(q.id)),
  );
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
