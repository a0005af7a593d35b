import type { LogHead, LogPage } from "./generated/api.js";
import type { CanonicalEvent, EventType } from "./generated/events.js";
import { type CallOptions, type Http, query, until } from "./http.js";
import { unwrap } from "./questions.js";

/** Which events of a log are read, and from where. */
export interface LogQuery extends CallOptions {
  /** The events behind this sequence, the oldest first. Default: from the beginning. */
  after?: number;
  /** The events before this sequence, the newest first. */
  before?: number;
  /** Events of a page, at most 1,000. */
  limit?: number;
  /** Of these types alone, those of members in the log of a team, too. */
  types?: readonly EventType[];
  /** Of this run alone. */
  run?: string;
}

/** A file that a member of a team made: the data of an `artifact.*` event, without the contents. */
export interface Artifact {
  artifact_id: string;
  path: string;
  size?: number;
  /** Absent where the contents were not kept. */
  object?: { log: string; digest: string };
  [member: string]: unknown;
}

/** A log in pages. To read what is yet to come, use `events` of a session, a team or a task. */
export class Log {
  /** For `WaggleClient`. */
  constructor(
    private readonly http: Http,
    private readonly leave: AbortSignal,
    readonly kind: "session" | "member" | "team" | "task" | "call",
    readonly id: string,
  ) {}

  /** Where the log begins and ends. */
  head(o: CallOptions = {}): Promise<LogHead> {
    return this.get("/head", o);
  }

  /** One page, the oldest event first. With `more` the next one is behind, or before, `next`. It may be empty and still have a next. */
  page(q: LogQuery = {}): Promise<LogPage> {
    const { signal, timeoutMs, ...wanted } = q;
    return this.get(`/events${query(wanted)}`, { signal, timeoutMs });
  }

  /** The events over all pages up to the present end, or back to the beginning. */
  async *events(q: LogQuery = {}): AsyncGenerator<CanonicalEvent, void, undefined> {
    for (let at: LogQuery | undefined = q; at; ) {
      const page: LogPage = await this.page(at);
      const list = page.events as unknown as CanonicalEvent[];
      yield* q.before === undefined ? list : list.reverse();
      const next = Number(page.next);
      at = page.more ? { ...q, ...(q.before === undefined ? { after: next } : { before: next }) } : undefined;
    }
  }

  /** The files that members made, each in its newest version, the newest first. */
  async *artifacts(o: CallOptions = {}): AsyncGenerator<Artifact, void, undefined> {
    const seen = new Set<string>();
    const { last } = await this.head(o);
    for await (const e of this.events({ ...o, before: last + 1, types: ["artifact.persisted", "artifact.updated"] })) {
      const a = unwrap(e).event.data as Artifact;
      if (!seen.has(a.artifact_id)) yield a;
      seen.add(a.artifact_id);
    }
  }

  /** A file as an event, or `artifacts`, tells of it; by its id alone the newest version. Rejects with `NOT_FOUND` once it has expired. */
  async artifact(a: Artifact | string, o: CallOptions = {}): Promise<Blob> {
    const of = typeof a === "string" ? undefined : a.object;
    const name = encodeURIComponent(typeof a === "string" ? a : a.artifact_id);
    const log = of?.log.replace(".", "/") ?? `${this.kind}/${encodeURIComponent(this.id)}`;
    const signal = until(this.leave, o);
    const path = `/api/v1/artifacts/${log}/${name}${query({ version: of?.digest })}`;
    return this.http.file(path, signal);
  }

  private get<T>(rest: string, o: CallOptions): Promise<T> {
    const signal = until(this.leave, o);
    const path = `/api/v1/logs/${this.kind}/${encodeURIComponent(this.id)}${rest}`;
    return this.http.persist(() => this.http.json<T>(path, { signal }), signal);
  }
}
