import { signal } from "@preact/signals";
import { WaggleError } from "@waggle-dev/client";
import { reason } from "../app.ts";
import { plain } from "../fold/text.ts";
import { t, type Word } from "../words.ts";

/** The questions that take no answer any more, as the server has told this page, which may know it before its lists do. */
export const ended = signal<ReadonlySet<string>>(new Set());

const firsts: Record<string, Word> = {
  approve: "question.first.approve",
  modify: "question.first.modify",
  reject: "question.first.reject",
};

/** What a person is told whose answer was refused because the question is over; undefined: another answer may still count. */
export function whyEnded(error: unknown): string | undefined {
  if (!(error instanceof WaggleError)) return undefined;
  if (error.code === "INPUT_ANSWERED") {
    const first = (error.detail ?? {}) as { decision?: string; answered_by?: string };
    const who = first.answered_by ? plain(first.answered_by) : t("question.somebody");
    return t(firsts[first.decision ?? ""] ?? "question.first.answer", { who });
  }
  return error.code === "INPUT_NOT_FOUND" || [404, 408, 409, 410].includes(error.status) ? reason(error) : undefined;
}
