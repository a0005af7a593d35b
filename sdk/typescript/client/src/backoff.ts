/** Bounds of the pauses between connections, in milliseconds. */
export interface BackoffOptions {
  /** The first pause; it doubles with each failure. */
  min: number;
  /** The longest pause. */
  max: number;
}

/** The usual bounds: a person does not wait long once the server is back. */
export const defaultBackoff: BackoffOptions = { min: 100, max: 5000 };

/** Bounds the pause that a server can ask for. */
const longest = 300_000;

/** The pauses between connections. Up to half of each is taken off by chance, so that clients do not come back at once. */
export class Backoff {
  private next: number;

  constructor(
    private readonly bounds: BackoffOptions = defaultBackoff,
    private readonly random: () => number = Math.random,
  ) {
    this.next = bounds.min;
  }

  /** Returns to the shortest pause. */
  reset(): void {
    this.next = this.bounds.min;
  }

  /** How long to wait now. `away` says that the server has sent the client to another one. */
  pause(more: { retryAfter?: number; goodbye?: boolean } = {}): number {
    const first = this.next === this.bounds.min;
    const d = this.next - (this.random() * this.next) / 2;
    this.next = Math.min(2 * this.next, this.bounds.max);
    if (more.goodbye && first) return this.random() * this.bounds.min;
    return more.retryAfter ? more.retryAfter + d : d;
  }
}

/** Reads the header `Retry-After`, seconds or a date, in milliseconds; 0 if it names no pause. */
export function retryAfter(value: string | null, now = Date.now()): number {
  if (!value) return 0;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return ms > 0 ? Math.min(ms, longest) : 0;
}

/** Waits, at most until the signal is aborted, and reports whether it waited to the end. */
export function rest(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((done) => {
    if (signal.aborted) return done(false);
    const stop = () => {
      clearTimeout(timer);
      done(false);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      done(true);
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
