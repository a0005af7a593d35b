import type { CanonicalEvent, EventType } from "./generated/events.js";
import { type Http, query } from "./http.js";
import { type FollowOptions, readStream } from "./log.js";

/** How announcements are read. */
export interface LiveOptions extends Pick<FollowOptions, "signal" | "onConnection"> {
  /** Only these types. */
  types?: readonly EventType[];
  /** Is told how many announcements were lost, because the reader was too slow. */
  onGap?: (dropped: number) => void;
}

/**
 * The announcements of the tenant: what happens in all its logs. They have no history: what happens while the
 * connection is away does not come later. Read the log itself where that matters.
 */
export async function* live(http: Http, o: LiveOptions = {}): AsyncGenerator<CanonicalEvent, void, undefined> {
  const reading = {
    request: () => ({ path: `/api/v1/live${query({ types: o.types })}` }),
    take: (m: { event?: string; data?: string }) => {
      if (m.event === "gap") o.onGap?.((JSON.parse(m.data ?? "{}") as { dropped?: number }).dropped ?? 0);
      return m.data !== undefined && m.event !== "gap" && m.event !== "problem";
    },
  };
  for await (const m of readStream(http, reading, o)) yield JSON.parse(m.data as string) as CanonicalEvent;
}
