import type { News } from "../live/protocol.ts";
import type { Tap } from "../live/tap.ts";

/** Whether the end of a log is followed. */
export class Following {
  /** Stops it; undefined: the log is not followed. */
  private end: (() => void) | undefined;

  constructor(
    private readonly tap: Pick<Tap, "follow">,
    private readonly log: string,
    private readonly hear: (n: News) => void,
  ) {}

  /** Follows the log. `from` says after which event, as soon as that is known; undefined: there is nothing to follow. */
  async start(from: () => Promise<number | undefined>): Promise<void> {
    if (this.end) return;
    const begins = () => {};
    this.end = begins;
    const after = await from();
    if (this.end !== begins || after === undefined) return;
    this.end = this.tap.follow(this.log, after, (n) => {
      if (n.do === "over") this.end = undefined;
      this.hear(n);
    });
  }

  stop(): void {
    this.end?.();
    this.end = undefined;
  }
}
