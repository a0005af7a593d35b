/** Between two patches pass so many milliseconds. */
const rest = 33;

/** Does work soon after something has changed, once for all that changes until then, and not too often. */
export class Pulse {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = 0;
  private stopped = false;

  constructor(private readonly work: () => void) {}

  /** Something has changed. */
  soon(): void {
    if (this.timer !== undefined || this.stopped) return;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.last = performance.now();
        this.work();
      },
      Math.max(0, this.last + rest - performance.now()),
    );
  }

  /** Does nothing any more. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }
}
