import { signal } from "@preact/signals";
import type { CanonicalEvent, LogPage } from "@waggle-dev/client";
import { client, refusedLogin, say } from "../app.ts";
import { type Sheet, sheetOf, typesOfSheet } from "../fold/run.ts";
import { patient } from "../log/patient.ts";
import { go, type RunRef } from "../route.ts";
import { t } from "../words.ts";

/** The sessions that are chosen for a comparison, two at most. */
export const chosen = signal<readonly string[]>([]);

/** Chooses a session for a comparison, or drops it again. Of three the last two stay. */
export function choose(session: string): void {
  const was = chosen.value.includes(session);
  chosen.value = was ? chosen.value.filter((s) => s !== session) : [...chosen.value, session].slice(-2);
  say(t(was ? "compare.dropped" : "compare.chosen"));
}

/** Compares the newest runs of the two chosen sessions; with one chosen, that of the session that is shown. Reports whether it could. */
export function compareChosen(shown: string | undefined): boolean {
  const two = shown !== undefined && chosen.value.length === 1 && !chosen.value.includes(shown) ? [...chosen.value, shown] : chosen.value;
  const [a, b] = two;
  if (a === undefined || b === undefined) return false;
  chosen.value = [];
  go({ room: "compare", a: { session: a, run: "" }, b: { session: b, run: "" } });
  return true;
}

/** A run of a session by its message. */
export interface Listed {
  run: string;
  text: string;
}

/** One side of a comparison. */
export interface Side {
  ref: RunRef;
  runs: readonly Listed[];
  sheet: Sheet;
}

type Page = LogPage & { events: CanonicalEvent[] };

/** All events of a session that a query names, page by page. */
async function events(session: string, query: string, signal: AbortSignal): Promise<CanonicalEvent[]> {
  const all: CanonicalEvent[] = [];
  for (let after = "0"; ; ) {
    const path = `/api/v1/logs/session/${encodeURIComponent(session)}/events?after=${after}&limit=1000&${query}`;
    const page = await patient(() => client.call<Page>("GET", path, undefined, { signal }), { signal });
    all.push(...page.events);
    if (!page.more || !page.next) return all;
    after = page.next;
  }
}

/** Reads a run, and which others its session has. Without the id of a run it is the newest one. */
export async function readSide(ref: RunRef, signal: AbortSignal): Promise<Side> {
  try {
    const messages = await events(ref.session, "types=message.received", signal);
    const runs = messages.flatMap((e) => (e.type === "message.received" ? [{ run: e.data.run_id, text: e.data.content }] : []));
    const run = ref.run || (runs.at(-1)?.run ?? "");
    const of = run === "" ? [] : await events(ref.session, `run=${encodeURIComponent(run)}&types=${typesOfSheet.join(",")}`, signal);
    return { ref: { ...ref, run }, runs, sheet: sheetOf(of.filter((e) => e.sequence <= (ref.at ?? Number.POSITIVE_INFINITY))) };
  } catch (error) {
    refusedLogin(error);
    throw error;
  }
}
