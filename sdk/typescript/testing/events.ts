import type { CanonicalEvent } from "@waggle-dev/client";

/** The seqs for which events stand: one that was merged from several stands for all of them. */
export const seqs = (events: readonly CanonicalEvent[]): number[] =>
  events.flatMap((e) => Array.from({ length: e.sequence - (e.from ?? e.sequence) + 1 }, (_, i) => (e.from ?? e.sequence) + i));
