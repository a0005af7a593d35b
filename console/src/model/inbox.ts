import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import type { ListedQuestion, QuestionAnswer, QuestionList } from "@waggle-dev/client";
import { client, now, reason, say } from "../app.ts";
import { asleep, readSnoozed, type Snooze, type Snoozed, wakes } from "../fold/inbox.ts";
import { route } from "../route.ts";
import { answer } from "./act.ts";
import { whyEnded } from "./ended.ts";
import { serverTime } from "./live.ts";

const key = "waggle.snoozed";

/** The questions that this browser has put off, with the times at which they come back. It keeps ids and times, no texts. */
export const snoozed = signal<Snoozed>(asleep(readSnoozed(localStorage.getItem(key)), Date.now()));

addEventListener("storage", (e) => {
  if (e.key === key) snoozed.value = asleep(readSnoozed(e.newValue), Date.now());
});

effect(() => {
  const time = now.value;
  const all = snoozed.peek();
  if (Object.values(all).some((at) => at <= time)) keep(asleep(all, time));
});

function keep(all: Snoozed): void {
  snoozed.value = all;
  localStorage.setItem(key, JSON.stringify(all));
}

/** Puts questions off, in this browser only. */
export function snooze(all: readonly ListedQuestion[], how: Snooze): void {
  const time = Date.now();
  keep({ ...asleep(snoozed.value, time), ...Object.fromEntries(all.map((q) => [q.id, wakes(how, time, q.expires_at)])) });
}

/** Brings a question back. */
export function wake(id: string): void {
  const { [id]: _, ...others } = snoozed.value;
  keep(others);
}

/** The questions of a list that were not put off. */
export function awake(rows: ReadonlySignal<readonly ListedQuestion[] | undefined>): ReadonlySignal<readonly ListedQuestion[] | undefined> {
  return computed(() => rows.value?.filter((q) => snoozed.value[q.id] === undefined));
}

/** What has become of a question. */
export interface Result {
  /** The answer that counts; expired: there is none; over: it is not known. */
  readonly decision: string;
  /** Who gave it; undefined: the person at this page. */
  readonly who: string | undefined;
  /** How much earlier it was given than that of this page, in milliseconds, if both are known. */
  readonly ahead?: number;
}

/** What has become of the questions that were open on this page. */
export const results = signal<ReadonlyMap<string, Result>>(new Map());

/** Why answers that were given to several questions at once do not count, by the questions that are still open. */
export const troubles = signal<ReadonlyMap<string, string>>(new Map());

const put = <V>(map: ReadonlyMap<string, V>, id: string, v: V): ReadonlyMap<string, V> => new Map([...map, [id, v]]);

/** The questions that this page is answering. */
const pending = new Set<string>();

/** Answers a question, and notes what has become of it: the answer counts, or somebody else's did before. */
export async function decide(q: Pick<ListedQuestion, "id">, a: Omit<QuestionAnswer, "id">): Promise<void> {
  const clicked = Date.now();
  pending.add(q.id);
  try {
    await answer(q.id, a, route.value.room === "questions" ? () => {} : say); // there the card says so
    results.value = put(results.value, q.id, { decision: a.decision, who: undefined });
  } catch (error) {
    if (whyEnded(error) !== undefined) void learn(q.id, clicked);
    throw error;
  } finally {
    pending.delete(q.id);
  }
}

/** So many answers are on their way at once: a browser has six connections for all its tabs. */
const atOnce = 3;

/** Gives each of several questions the same answer, for exactly what it has shown. */
export async function decideAll(all: readonly ListedQuestion[], a: Omit<QuestionAnswer, "id" | "digest">): Promise<void> {
  troubles.value = new Map();
  const left = [...all];
  const one = async () => {
    for (let q = left.shift(); q; q = left.shift()) {
      const { id, digest } = q;
      await decide(q, { ...a, ...(digest ? { digest } : {}) }).catch((error) => {
        if (whyEnded(error) === undefined) troubles.value = put(troubles.value, id, reason(error));
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

/** The list of the server follows an answer within about a second. */
const looks = 4;
const between = 600;

/** Finds out what has become of a question that is not open any more, and that this page is not about to answer. */
export async function learn(id: string, clicked?: number): Promise<void> {
  if (clicked === undefined && pending.has(id)) return;
  const [kind = "", log = ""] = id.split(".");
  const found = async (state: string) => {
    const q = new URLSearchParams({ state, kind, log, limit: "200" });
    const page = await client.call<QuestionList>("GET", `/api/v1/questions?${q}`).catch(() => undefined);
    return page?.questions.find((one) => one.id === id);
  };
  for (let n = 0; n < looks; n++) {
    const q = await found("answered");
    if (results.value.has(id)) return; // of this page
    if (q) {
      const ahead = clicked !== undefined && q.ended_at ? Math.max(0, clicked - serverTime(q.ended_at)) : undefined;
      const who = q.answered_by ?? "";
      results.value = put(results.value, id, { decision: q.decision ?? "answer", who, ...(ahead === undefined ? {} : { ahead }) });
      return;
    }
    if (await found("expired")) {
      results.value = put(results.value, id, { decision: "expired", who: "" });
      return;
    }
    await new Promise((go) => setTimeout(go, between));
  }
}
