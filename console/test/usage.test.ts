import type { CanonicalEvent } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { attemptsOf } from "../src/fold/attempts.ts";
import { usageOf } from "../src/fold/usage.ts";
import { emptyState } from "../src/log/states.ts";
import { inAndOut, tokensOf } from "../src/parts/amounts.ts";

type Entry = readonly [type: string, data: object];

function stateOf(all: readonly Entry[]) {
  const s = emptyState("session");
  for (const [i, [type, data]] of all.entries())
    s.take({ type, data, time: new Date(i * 1000).toISOString(), sequence: i + 1, id: String(i) } as unknown as CanonicalEvent);
  return s;
}

const attempts = (...all: Entry[]) => stateOf(all).summary.attempts;

/** The beginning of a run, whose job is that of its answer. */
const begun = (run_id: string): Entry[] => [
  ["message.received", { run_id, message_id: `${run_id}.m`, content: "hi" }],
  ["run.started", { run_id }],
];
const job = (run_id: string, attempt: number, job_id = ""): Entry => ["job.started", { run_id, attempt, ...(job_id ? { job_id } : {}) }];

test("a job that was taken over, or retried after a failure, had a further attempt", () => {
  expect(attempts(...begun("r"), job("r", 1))).toBeUndefined();
  expect(attempts(...begun("r"), job("r", 1), job("r", 2))).toEqual({ n: 2, seq: 4 });
  const retried: Entry[] = [
    ...begun("r"),
    job("r", 1, "j"),
    ["job.failed", { run_id: "r", job_id: "j", code: "MODEL_UNAVAILABLE" }],
    ["retry.scheduled", { run_id: "r", job_id: "j", code: "MODEL_UNAVAILABLE" }],
    job("r", 2, "j"),
  ];
  expect(attempts(...retried)).toEqual({ n: 2, seq: 6 });
  expect(attempts(...retried, job("r", 3, "j"), job("r", 1, "k"), job("r", 2, "k"))).toEqual({ n: 3, seq: 7 });
});

test("a job that resumes once people have answered had no further attempt", () => {
  const answered: Entry[] = [
    ...begun("r"),
    job("r", 1),
    ["job.suspended", { run_id: "r", attempt: 1, inputs: ["q"] }],
    ["input.answered", { run_id: "r", input_id: "q", decision: "approve" }],
    job("r", 2),
  ];
  expect(attempts(...answered)).toBeUndefined();
  expect(attempts(...answered, job("r", 3))).toEqual({ n: 2, seq: 7 });
});

test("the attempts are those of the newest run, or of a run that is named", () => {
  const two: Entry[] = [...begun("a"), job("a", 1), job("a", 2), ["run.completed", { run_id: "a" }], ...begun("b"), job("b", 1)];
  expect(attempts(...two)).toBeUndefined();
  const { bars } = stateOf(two).bars;
  expect(attemptsOf(bars, "a")).toEqual({ n: 2, seq: 4 });
  expect(attemptsOf(bars, "b")).toBeUndefined();
});

const ended = (usage?: object) => usageOf({ data: { usage } } as unknown as CanonicalEvent);

test("the usage of a run says what was cached where the log knows it, and leaves out what is unknown", () => {
  expect(ended({ llm_calls: 2, input_tokens: 1204, cached_tokens: 812, output_tokens: 96, cost_usd: 0.01 })).toEqual({
    input: 1204,
    cached: 812,
    output: 96,
    cost: 0.01,
  });
  for (const none of [{}, { cached_tokens: 0 }])
    expect(ended({ llm_calls: 1, input_tokens: 5, output_tokens: 0, ...none })).toEqual({ input: 5, output: 0 });
  expect(ended({ llm_calls: 1, output_tokens: 7, cached_tokens: 3 })).toEqual({ output: 7 });
  for (const unknown of [undefined, {}, { llm_calls: 0, input_tokens: 0, output_tokens: 0 }, { llm_calls: 3 }])
    expect(ended(unknown)).toBeUndefined();
  expect(usageOf(undefined)).toBeUndefined();
});

test("amounts of tokens read alike for a run and a session", () => {
  expect(inAndOut({ input: 1204, cached: 812, output: 96 })).toBe("1,204 in (812 cached) · 96 out");
  expect(inAndOut({ input: 1204, output: 0 })).toBe("1,204 in · 0 out");
  expect(inAndOut({ output: 96 })).toBe("96 out");
  const session = { session_id: "s", status: "open", last_seq: 1, last_event: "x", updated_at: "" } as const;
  expect(tokensOf({ ...session, tokens: 1300, input_tokens: 1204, cached_tokens: 812 })).toBe("1,204 in (812 cached) · 96 out");
  expect(tokensOf({ ...session, tokens: 1300, input_tokens: 1204 })).toBe("1,204 in · 96 out");
  expect(tokensOf({ ...session, tokens: 1300 })).toBe("");
});
