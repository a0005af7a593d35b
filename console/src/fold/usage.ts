import type { CanonicalEvent } from "@waggle-dev/client";

/** What models used, as far as it is known. */
export interface Usage {
  input?: number;
  /** Of the input: read from a provider's cache. */
  cached?: number;
  output?: number;
  /** In US dollars; absent: a model has no price. */
  cost?: number;
}

/** What the end of a run, a job or a step says of its usage; undefined: no model was called, or no number of tokens is known. */
export function usageOf(e: CanonicalEvent | undefined): Usage | undefined {
  const { usage } = (e?.data ?? {}) as { usage?: Record<string, unknown> };
  const input = count(usage?.["input_tokens"]);
  const output = count(usage?.["output_tokens"]);
  if (!usage?.["llm_calls"] || (input === undefined && output === undefined)) return undefined;
  const cached = input === undefined ? undefined : count(usage["cached_tokens"]);
  const cost = usage["cost_usd"];
  return {
    ...(input === undefined ? {} : { input }),
    ...(cached ? { cached } : {}), // a log does not tell none from unknown
    ...(output === undefined ? {} : { output }),
    ...(typeof cost === "number" ? { cost } : {}),
  };
}

const count = (value: unknown) => (typeof value === "number" && value >= 0 ? value : undefined);
