import { signal } from "@preact/signals";
import type { ModelTrial } from "@waggle-dev/client";

/** What the trials of the model have come to. */
export type TrialState = "new" | "running" | "done" | "stopped" | "failed";

/** The trials of the model, made one after the other: each costs tokens, so that none is repeated by itself. */
export class Trials {
  readonly state = signal<TrialState>("new");
  readonly results = signal<readonly ModelTrial[]>([]);
  /** Why a trial could not be made. */
  readonly error = signal<unknown>(undefined);
  private leave = new AbortController();

  constructor(private readonly make: (n: number, signal: AbortSignal) => Promise<ModelTrial>) {}

  /** Makes all trials, from the first. */
  async start(): Promise<void> {
    if (this.state.value === "running") return;
    this.results.value = [];
    await this.resume();
  }

  /** Makes the trials that have no result yet. */
  async resume(): Promise<void> {
    if (this.state.value === "running") return;
    const { signal } = this.leave;
    this.state.value = "running";
    this.error.value = undefined;
    try {
      for (let last: ModelTrial | undefined = this.results.value.at(-1); more(last); ) {
        last = await this.make(this.results.value.length, signal);
        if (signal.aborted) return;
        this.results.value = [...this.results.value, last];
      }
      this.state.value = "done";
    } catch (error) {
      if (signal.aborted) return;
      this.error.value = error;
      this.state.value = "failed";
    }
  }

  /** Makes no further trial, and does not wait for the present one. */
  stop(): void {
    if (this.state.value !== "running") return;
    this.leave.abort();
    this.leave = new AbortController();
    this.state.value = "stopped";
  }
}

/** Whether a trial follows the last one. */
const more = (last: ModelTrial | undefined) => last === undefined || (!last.stopped && last.trial + 1 < last.of);
