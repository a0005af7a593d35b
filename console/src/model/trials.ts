import type { ModelTrial } from "@waggle-dev/client";
import { Pieces } from "./pieces.ts";

/** The trials of the model, made one after the other: each costs tokens. */
export class Trials extends Pieces<ModelTrial> {
  constructor(make: (n: number, signal: AbortSignal) => Promise<ModelTrial>) {
    super(
      (all, signal) => make(all.length, signal),
      (last) => !last.stopped && last.trial + 1 < last.of,
    );
  }
}
