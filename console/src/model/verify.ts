import { signal } from "@preact/signals";
import type { AuditCheck } from "@waggle-dev/client";

/** How far a check of the audit log is. */
export type CheckState = "new" | "running" | "done" | "stopped" | "failed";

/** A check of the whole audit log, which the server makes in parts. */
export class Verification {
  readonly state = signal<CheckState>("new");
  /** What was found so far. */
  readonly found = signal<AuditCheck | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  private leave = new AbortController();

  constructor(private readonly ask: (next: string | undefined, signal: AbortSignal) => Promise<AuditCheck>) {}

  /** Checks the log from its beginning. */
  async start(): Promise<void> {
    if (this.state.value === "running") return;
    this.found.value = undefined;
    await this.resume();
  }

  /** Checks what has not been checked yet. */
  async resume(): Promise<void> {
    if (this.state.value === "running") return;
    const { signal } = this.leave;
    this.state.value = "running";
    this.error.value = undefined;
    try {
      do {
        const found = await this.ask(this.found.value?.next, signal);
        if (signal.aborted) return;
        this.found.value = found;
      } while (this.found.value.next !== undefined);
      this.state.value = "done";
    } catch (error) {
      if (signal.aborted) return;
      this.error.value = error;
      this.state.value = "failed";
    }
  }

  stop(): void {
    if (this.state.value !== "running") return;
    this.leave.abort();
    this.leave = new AbortController();
    this.state.value = "stopped";
  }
}
