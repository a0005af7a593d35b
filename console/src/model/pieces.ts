import { signal } from "@preact/signals";

/** How far something is that is made piece by piece. */
export type Progress = "new" | "running" | "done" | "stopped" | "failed";

/** Something that is made piece by piece, each after the one before. No piece is made twice: it may be dear. */
export class Pieces<T> {
  readonly state = signal<Progress>("new");
  readonly results = signal<readonly T[]>([]);
  /** Why a piece could not be made. */
  readonly error = signal<unknown>(undefined);
  private leave = new AbortController();

  constructor(
    /** Makes the piece that follows those. */
    private readonly make: (all: readonly T[], signal: AbortSignal) => Promise<T>,
    /** Whether another one follows it. */
    private readonly more: (last: T) => boolean,
  ) {}

  /** Makes all pieces, from the first. */
  async start(): Promise<void> {
    if (this.state.value === "running") return;
    this.results.value = [];
    await this.resume();
  }

  /** Makes the pieces that are not there yet. */
  async resume(): Promise<void> {
    if (this.state.value === "running") return;
    const { signal } = this.leave;
    this.state.value = "running";
    this.error.value = undefined;
    try {
      for (let last = this.results.value.at(-1); last === undefined || this.more(last); ) {
        last = await this.make(this.results.value, signal);
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

  /** Makes no further piece, and does not wait for the present one. */
  stop(): void {
    if (this.state.value !== "running") return;
    this.leave.abort();
    this.leave = new AbortController();
    this.state.value = "stopped";
  }
}
