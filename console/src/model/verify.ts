import { computed } from "@preact/signals";
import type { AuditCheck } from "@waggle-dev/client";
import { Pieces } from "./pieces.ts";

/** A check of the whole audit log, which the server makes in parts. */
export class Verification extends Pieces<AuditCheck> {
  /** What was found so far: a part counts those before it. */
  readonly found = computed(() => this.results.value.at(-1));

  constructor(ask: (next: string | undefined, signal: AbortSignal) => Promise<AuditCheck>) {
    super(
      (all, signal) => ask(all.at(-1)?.next, signal),
      (last) => last.next !== undefined,
    );
  }
}
