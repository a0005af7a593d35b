import { computed, effect, signal } from "@preact/signals";
import type { CanonicalEvent } from "@waggle-dev/client";
import { epoch, me, refusedLogin, token } from "../app.ts";
import { Skew } from "../fold/inbox.ts";
import type { Report } from "../log/protocol.ts";
import { errorOf, order } from "./worker.ts";

/** A tab that nobody sees ends its topics after so long. */
const hiddenAfter = 30_000;

const seen = () => document.visibilityState === "visible";

/** Whether the tab is shown, or was a moment ago. */
export const shown = signal(seen());

let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (seen()) shown.value = true;
  else
    hiding = window.setTimeout(() => {
      shown.value = false;
    }, hiddenAfter);
});

/** Whether this is the tab that tells of questions while nobody sees one. */
const tells = signal(false);

const attends = computed(() => shown.value || tells.value);

/** The connection to the gateway, as the announcements show it. */
export const connection = signal<{ up: boolean; since: number }>({ up: false, since: Date.now() });

/** Has something on while the tab is shown. */
export function whileShown(set: (on: boolean) => void): () => void {
  return effect(() => {
    epoch.value;
    if (!shown.value) return;
    set(true);
    return () => set(false);
  });
}

const listeners = new Set<(e: CanonicalEvent | undefined) => void>();

/** Calls the listener with each announcement, and without one when some may have been missed. */
export function onChange(listener: (e: CanonicalEvent | undefined) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = (e?: CanonicalEvent) => {
  for (const f of listeners) f(e);
};

/** Tells the worker who this is: tabs of one principal share their streams. */
export function identify(): void {
  const who = me.value ? JSON.stringify([me.value.tenant, me.value.subject, me.value.roles, me.value.may]) : "";
  order({ do: "as", who, token: token() });
  if (who !== "") watchOver(who);
}

let principal = "";
let release = () => {};

/** Has one tab of a principal go on counting questions when it is hidden: the first one, then another when it ends. */
function watchOver(who: string): void {
  if (who === principal) return;
  principal = who;
  release();
  tells.value = false;
  const over = new Promise<void>((go) => {
    release = go;
  });
  void navigator.locks?.request(`waggle-questions ${who}`, () => {
    tells.value = who === principal;
    return over;
  });
}

/** Reads the announcements of the tenant until the page is left. */
export function watch(): () => void {
  const ends = [
    effect(identify),
    effect(() => {
      epoch.value;
      if (!attends.value) return;
      connected(false);
      order({ do: "listen", on: true }, take);
      return () => order({ do: "listen", on: false });
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

const skew = new Skew();

/** When something happened that bears a time of the server, on the clock of this page. */
export const serverTime = (time: string): number => skew.local(time);

function take(r: Report): void {
  if (r.do === "announced") {
    skew.hear(r.event.time, Date.now());
    tell(r.event);
  } else if (r.do === "up") {
    if (connection.value.up !== r.up) connected(r.up);
    if (r.up) tell(); // what happened meanwhile was not announced here
  } else if (r.do === "error") {
    connected(false);
    const error = errorOf(r.error);
    if (!refusedLogin(error)) throw error;
  }
}

function connected(up: boolean): void {
  connection.value = { up, since: Date.now() };
}

/** The server's lists and summaries follow logs with a second between two looks: after so long they have a change. */
const settled = 1600;

/**
 * Reads something of the server: now, after each announcement that matters, and once more when the server has followed. The
 * function that it returns ends that.
 */
export function follow(read: () => Promise<void>, matters: (e: CanonicalEvent) => boolean = () => true): () => void {
  const poke = soon(read);
  let late = 0;
  const leave = onChange((e) => {
    if (e && !matters(e)) return;
    poke();
    clearTimeout(late);
    late = window.setTimeout(poke, settled);
  });
  void read();
  return () => {
    clearTimeout(late);
    leave();
  };
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
