import { parsed, WaggleError } from "./failure.js";
import type { CanonicalEvent, EventType } from "./generated/events.js";
import { final, type Http } from "./http.js";
import { type FollowOptions, Position, type ProblemDocument, readStream } from "./log.js";
import type { SseMessage } from "./sse.js";

/** How announcements are read. */
export interface LiveOptions extends Pick<FollowOptions, "signal" | "onConnection" | "silence"> {
  /** Only these types. */
  types?: readonly EventType[];
  /** Is told how many announcements were lost, because the reader or the gateway was too slow. */
  onGap?: (dropped: number) => void;
}

/** Which topics a stream shows, and how it is read. */
export interface TopicOptions extends LiveOptions {
  /**
   * Logs as KIND/ID, each with the sequence of the last event that is known. At most one may have an id with characters other
   * than letters, digits, _ and -.
   */
  logs?: Readonly<Record<string, number>>;
  /** Whether the announcements come, too. */
  announcements?: boolean;
}

/** Whether a log, as KIND/ID, has an id with other characters than letters, digits, _ and -. Its events do not say that id. */
export const hasOddId = (log: string): boolean => !/^[a-z]+\/(?!h_)[\w-]{1,128}$/.test(log);

/** What a stream of several topics tells: of a log, as KIND/ID, or an announcement. */
export type TopicMessage =
  | { log?: undefined; event: CanonicalEvent }
  | { log: string; event: CanonicalEvent }
  /** The server has less of the log than was asked for: its first event. */
  | { log: string; first: number }
  /** The log is not shown, or not any more; the other topics are. */
  | { log: string; error: WaggleError };

/**
 * The announcements of the tenant: what happens in all its logs. They have no history: what happens while the
 * connection is away does not come later. Read the log itself where that matters.
 */
export async function* live(http: Http, o: LiveOptions = {}): AsyncGenerator<CanonicalEvent, void, undefined> {
  for await (const m of topics(http, { ...o, announcements: true })) yield (m as { event: CanonicalEvent }).event;
}

/**
 * Several logs and the announcements on one connection. Of each log each event comes once and in order, however often the
 * connection breaks; of the announcements nothing that happens while it is away.
 */
export async function* topics(http: Http, o: TopicOptions): AsyncGenerator<TopicMessage, void, undefined> {
  const at = new Map(Object.entries(o.logs ?? {}).map(([log, after]) => [log, new Position(after)]));
  const odd = [...at.keys()].filter(hasOddId);
  if (odd[1] !== undefined) throw new WaggleError("INVALID_FIELD", "two of the logs have ids with other characters", { field: "logs" });
  let asked = new Map<string, string>();
  let told: TopicMessage | undefined;
  const reading = {
    request: () => {
      asked = new Map([...at].map(([log, p]) => [`log:${log}@${p.at}`, log]));
      const names = o.announcements ? [...asked.keys(), "events"] : [...asked.keys()];
      const q = new URLSearchParams(names.map((t) => ["t", t]));
      if (o.types) q.set("types", o.types.join());
      return { path: `/api/v1/live?${q}` };
    },
    take: (m: SseMessage) => {
      told = m.data === undefined ? undefined : read(m.event ?? "", parsed(m.data, "an event of the stream"));
      return told !== undefined;
    },
  };
  if (at.size === 0 && !o.announcements) return;
  for await (const _ of readStream(http, reading, o)) {
    yield told as TopicMessage;
    if (at.size === 0 && !o.announcements) return;
  }

  function read(name: string, data: CanonicalEvent & Problem & { dropped?: number }): TopicMessage | undefined {
    if (name === "problem") return refuse(data);
    if (name === "gap") o.onGap?.(data.dropped ?? 0);
    else if (name !== "log") return { event: data };
    else {
      const [, kind, id] = (data.subject ?? "").split(".");
      const log = at.has(`${kind}/${id}`) ? `${kind}/${id}` : (odd[0] ?? "");
      if (at.get(log)?.reach(data.from ?? data.sequence, data.sequence)) return { log, event: data };
    }
    return undefined;
  }

  function refuse(d: Problem): TopicMessage {
    const log = asked.get(d.topic ?? "");
    const p = d.problem ?? d;
    if (log !== undefined && p.title === "HISTORY_EXPIRED" && p.first !== undefined) {
      at.get(log)?.skip(p.first - 1);
      return { log, first: p.first };
    }
    const error = new WaggleError(p.title, p.detail, { status: p.status, detail: p });
    if (log === undefined || !final(error)) throw error;
    at.delete(log);
    return { log, error };
  }
}

/** A problem of a topic, or of the whole stream. */
interface Problem extends ProblemDocument {
  topic?: string;
  problem?: ProblemDocument;
}
