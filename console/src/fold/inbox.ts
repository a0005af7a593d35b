import type { ListedQuestion } from "@waggle-dev/client";

/** What can be asked for, in the order in which an inbox shows it. */
export const scopes = ["plan", "tool", "budget", "agent", "client_tool"] as const;

/** The questions that ask for the same thing. */
export interface Group {
  readonly scope: string;
  readonly questions: readonly ListedQuestion[];
}

/** Orders questions by their end, then by their age. */
export function soonest(a: ListedQuestion, b: ListedQuestion): number {
  const difference = endOf(a) - endOf(b);
  return Number.isNaN(difference) || difference === 0 ? (a.asked_at < b.asked_at ? -1 : 1) : difference;
}

const endOf = (q: ListedQuestion) => (q.expires_at ? Date.parse(q.expires_at) : Number.POSITIVE_INFINITY);

/** Groups questions by what they ask for; within a group the one that ends first is on top. What this page does not know comes last. */
export function grouped(all: readonly ListedQuestion[]): readonly Group[] {
  const known: readonly string[] = scopes;
  const names = [...new Set([...known, ...all.map((q) => q.scope)])];
  return names
    .map((scope) => ({ scope, questions: all.filter((q) => q.scope === scope).sort(soonest) }))
    .filter((g) => g.questions.length > 0);
}

/** When the next of several questions ends; undefined: none has a limit. */
export function nextEnd(all: readonly ListedQuestion[]): string | undefined {
  return all.toSorted(soonest)[0]?.expires_at;
}

/** Whether one answer can be given to a question together with others: each is shown whole, and a tool's result is not the same twice. */
export const answersTogether = (q: ListedQuestion): boolean => q.scope !== "client_tool" && q.cut !== true;

/** The choice without the questions that it may not hold: those that are over, and those of another scope than the newest. */
export function chosenOf(picked: readonly string[], open: readonly ListedQuestion[]): readonly ListedQuestion[] {
  const byId = new Map(open.map((q) => [q.id, q]));
  const all = picked.flatMap((id) => byId.get(id) ?? []).filter(answersTogether);
  const scope = all.at(-1)?.scope;
  return all.filter((q) => q.scope === scope);
}

/** For how long a question can be put off. */
export const snoozes = ["quarter", "hour", "tomorrow"] as const;
export type Snooze = (typeof snoozes)[number];

const minute = 60_000;
/** A question that ends before its time comes back so long before its end, or after half of what it has left. */
const margin = 5 * minute;
/** The hour of the next day at which a question comes back. */
const morning = 8;

/** When a question that is put off comes back. Its end brings it back earlier, while it can still be answered. */
export function wakes(how: Snooze, now: number, expires: string | undefined): number {
  const until = how === "quarter" ? now + 15 * minute : how === "hour" ? now + 60 * minute : tomorrow(now);
  const end = expires ? Date.parse(expires) : Number.NaN;
  if (Number.isNaN(end) || end - margin >= until) return until;
  return Math.max(now, end - Math.min(margin, (end - now) / 2));
}

function tomorrow(now: number): number {
  const d = new Date(now);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() + 1, morning).getTime();
}

/** When the questions that are put off come back, by their ids. */
export type Snoozed = Readonly<Record<string, number>>;

/** Reads what a browser has kept. Whatever else may stand there counts as nothing. */
export function readSnoozed(text: string | null): Snoozed {
  try {
    const all: unknown = JSON.parse(text ?? "");
    if (typeof all !== "object" || all === null || Array.isArray(all)) return {};
    return Object.fromEntries(Object.entries(all).filter(([, at]) => typeof at === "number"));
  } catch {
    return {};
  }
}

/** What of it still sleeps. */
export function asleep(all: Snoozed, now: number): Snoozed {
  return Object.fromEntries(Object.entries(all).filter(([, at]) => at > now));
}

/** The local time at which something happened on the server, from how late announcements were at least: two clocks never agree. */
export class Skew {
  private least: number | undefined;

  /** Takes the server's time of something that has just been heard of. */
  hear(time: string, now: number): void {
    const late = now - Date.parse(time);
    if (!Number.isNaN(late) && (this.least === undefined || late < this.least)) this.least = late;
  }

  local(time: string): number {
    return Date.parse(time) + (this.least ?? 0);
  }
}
