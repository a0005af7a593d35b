import type { Connection, Watch } from "@waggle-dev/client";

/** How far a connection lags, over all of its listed viewers. */
export interface Behind {
  /** Events that the slowest viewer is behind. */
  events: number;
  /** Bytes that wait to be written, or for room to wait there. */
  bytes: number;
  /** Announcements that the client did not get. */
  missed: number;
  /** The viewer that has lagged longest, if any does. */
  lag: Watch | undefined;
}

export function behind(c: Connection): Behind {
  const b: Behind = { events: 0, bytes: c.queued_bytes, missed: 0, lag: undefined };
  for (const w of c.watches) {
    b.events = Math.max(b.events, w.events_behind);
    b.bytes += w.waiting_bytes;
    b.missed += w.missed ?? 0;
    if (w.reason && (!b.lag || (w.lagging_since ?? "") < (b.lag.lagging_since ?? ""))) b.lag = w;
  }
  return b;
}

/** Whether a connection has the text in its principal, protocol, gateway, id or one of the logs that it watches. */
export function watches(c: Connection, text: string): boolean {
  const word = text.trim().toLowerCase();
  return [c.principal, c.protocol, c.gateway, c.id, c.remote, ...c.watches.map((w) => w.log)].some((x) => x?.toLowerCase().includes(word));
}
