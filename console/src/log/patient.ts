import { WaggleError } from "@waggle-dev/client";

/** Refusals that waiting a moment does not change: people have to do something first, which the refusal says. */
const refusals: readonly string[] = ["QUOTA_EXCEEDED", "QUEUE_FULL"];

const pauses = [300, 1000, 2000, 5000];

/** Repeats what repeating does not change until the server has answered it, or until it is not wanted any more. */
export async function patient<T>(
  attempt: () => Promise<T>,
  o: { signal?: AbortSignal; onWait?: (waits: boolean) => void } = {},
): Promise<T> {
  for (let n = 0; ; n++) {
    try {
      const answer = await attempt();
      o.onWait?.(false);
      return answer;
    } catch (error) {
      const away =
        error instanceof WaggleError &&
        (error.status === 0 || error.status >= 500 || error.status === 429) &&
        !refusals.includes(error.code);
      if (!away || o.signal?.aborted) throw error;
      o.onWait?.(true);
      await new Promise((go) => setTimeout(go, pauses[Math.min(n, pauses.length - 1)]));
    }
  }
}
