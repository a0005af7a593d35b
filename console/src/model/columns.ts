import { effect, signal } from "@preact/signals";
import type { SessionSummary } from "@waggle-dev/client";

/** A column of the table of sessions. */
export type Column = "who" | "by" | "duration" | "tokens" | "cost" | "runs" | "started" | "changed";

/** All columns, in their order; state and title are always there. */
export const columns: readonly Column[] = ["who", "by", "duration", "tokens", "cost", "runs", "started", "changed"];

const usual: readonly Column[] = ["who", "duration", "tokens", "cost", "changed"];

/** How rows are ordered: by a column, or by the last change, which is how the server lists them. */
export interface Order {
  by: Column | "title" | "state";
  down: boolean;
}

/** How the server lists sessions. */
export const newest: Order = { by: "changed", down: true };

/** A filter with a name. */
export interface View {
  name: string;
  q: string;
  state: string;
}

function kept<T>(key: string, or: T, reads: (value: unknown) => T | undefined) {
  let first = or;
  try {
    first = reads(JSON.parse(localStorage.getItem(key) ?? "null")) ?? or;
  } catch {
    // what another version has left is not read
  }
  const s = signal(first);
  effect(() => localStorage.setItem(key, JSON.stringify(s.value)));
  return s;
}

/** The columns that the reader has chosen. */
export const chosenColumns = kept<readonly Column[]>("waggle.columns", usual, (v) =>
  Array.isArray(v) ? columns.filter((c) => v.includes(c)) : undefined,
);

/** The filters that the reader has saved. */
export const views = kept<readonly View[]>("waggle.views", [], (v) =>
  Array.isArray(v) ? v.filter((x): x is View => [x?.name, x?.q, x?.state].every((s) => typeof s === "string")) : undefined,
);

/** Who answered last: the agent, or else the model. */
export const whoOf = (s: SessionSummary): string => s.agent ?? s.model ?? "";

const value: Record<Order["by"], (s: SessionSummary) => string | number | undefined> = {
  state: (s) => s.state ?? "",
  title: (s) => s.question?.toLowerCase(),
  who: (s) => whoOf(s).toLowerCase() || undefined,
  by: (s) => s.principal?.toLowerCase(),
  duration: (s) => s.duration_ms,
  tokens: (s) => s.tokens,
  cost: (s) => s.cost_usd,
  runs: (s) => s.runs,
  started: (s) => s.created_at,
  changed: (s) => s.updated_at,
};

/** The rows in an order. Those without a value come last, either way. */
export function ordered(rows: readonly SessionSummary[], o: Order): readonly SessionSummary[] {
  const of = value[o.by];
  const sign = o.down ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === y) return 0;
    if (x === undefined) return 1;
    if (y === undefined) return -1;
    return x < y ? -sign : sign;
  });
}

/** The state of a session as lists show it: one that was closed says so, unless its last run ended badly. */
export function stateOf(s: SessionSummary): string {
  const ended = s.state ?? "idle";
  return s.status === "closed" && (ended === "idle" || ended === "completed") ? "closed" : ended;
}
