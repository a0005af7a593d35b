import { effect, signal } from "@preact/signals";
import type { CanonicalEvent } from "@waggle-dev/client";
import { client, epoch, refusedLogin } from "../app.ts";

/** A tab that nobody sees ends its streams after so long: a browser gives all tabs of an origin six connections. */
const hiddenAfter = 30_000;

/** Whether the tab is shown, or was a moment ago. */
export const shown = signal(true);

let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.visibilityState === "visible") shown.value = true;
  else
    hiding = window.setTimeout(() => {
      shown.value = false;
    }, hiddenAfter);
});

/** The connection to the gateway, as the announcements show it. */
export const connection = signal<{ up: boolean; since: number }>({ up: false, since: Date.now() });

/** Keeps a stream open while the tab is shown. */
export function whileShown(read: (signal: AbortSignal) => Promise<void>): () => void {
  return effect(() => {
    epoch.value;
    if (!shown.value) return;
    const stop = new AbortController();
    void read(stop.signal);
    return () => stop.abort();
  });
}

/** The announcements that lists change with: never a piece of a text. */
const types = [
  "session.created",
  "session.closed",
  "session.deleted",
  "message.received",
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "input.requested",
  "input.answered",
  "input.expired",
  "task.created",
  "task.queued",
  "task.assigned",
  "task.released",
  "task.asked",
  "task.ask_expired",
  "task.finished",
  "team.member_event",
] as const;

const listeners = new Set<(e: CanonicalEvent | undefined) => void>();

/** Calls the listener with each announcement, and without one when some may have been missed. */
export function onChange(listener: (e: CanonicalEvent | undefined) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = (e?: CanonicalEvent) => {
  for (const f of listeners) f(e);
};

/** Reads the announcements of the tenant until the page is left. */
export function watch(): () => void {
  return whileShown(async (signal) => {
    try {
      const announcements = client.live({
        types,
        signal,
        onGap: () => tell(),
        onConnection: (up) => {
          if (connection.value.up !== up) connection.value = { up, since: Date.now() };
          if (up) tell(); // what happened meanwhile was not announced here
        },
      });
      for await (const e of announcements) tell(e);
    } catch (error) {
      connection.value = { up: false, since: Date.now() };
      if (!refusedLogin(error)) throw error;
    }
  });
}

/** Calls f soon after the first of several changes, and never twice at a time. */
export function soon(f: () => Promise<void>, pause = 200): () => void {
  let state: "rests" | "waits" | "runs" | "runs, and again" = "rests";
  const wait = () => {
    state = "waits";
    setTimeout(() => {
      state = "runs";
      void f().finally(() => {
        if (state === "runs") state = "rests";
        else wait();
      });
    }, pause);
  };
  return () => {
    if (state === "rests") wait();
    else if (state === "runs") state = "runs, and again";
  };
}
