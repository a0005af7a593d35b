import { readFileSync } from "node:fs";
import type { CanonicalEvent } from "@waggle-dev/client";
import { ViewBuilder } from "@waggle-dev/client/view";
import { expect, test } from "vitest";
import { BarsBuilder } from "../src/fold/bars.ts";
import { isRefusal, problem } from "../src/problem.ts";

// A log in which a model refuses calls, a step fails, another one is skipped, and people decide.

const log = readFileSync(new URL("../../gateway/snapshot/testdata/refusals.jsonl", import.meta.url), "utf8");
const events = log
  .trimEnd()
  .split("\n")
  .map((l) => JSON.parse(l) as CanonicalEvent);

function viewAfter(type: CanonicalEvent["type"], n = 1) {
  const view = new ViewBuilder();
  let left = n;
  for (const e of events) {
    view.take(e);
    if (e.type === type && --left === 0) break;
  }
  return view.view.items;
}

test("who decided what, when and why stays in the conversation", () => {
  const decided = viewAfter("run.cancelled").filter((i) => i.kind === "decision");
  expect(decided.map(({ code, scope, by, name, text }) => [code, scope, by, name, text])).toEqual([
    ["modify", "plan", "anna", "", "Not so many."],
    ["reject", "tool", "anna", "write_file", "Too risky."],
    ["withdrawn", "agent", undefined, "", ""],
    ["expired", "budget", undefined, "", ""],
  ]);
  expect(decided[0]?.at).toBe(Date.parse(events.find((e) => e.type === "input.answered")?.time ?? ""));
});

test("a step says why it failed or was skipped", () => {
  const plan = viewAfter("run.completed").find((i) => i.kind === "plan");
  expect(plan?.steps.map((s) => [s.status, s.text])).toEqual([
    ["failed", "The rate limit of the model's service is reached."],
    ["cancelled", "dependency_failed"],
    ["completed", "third"],
  ]);
});

test("a wait for the next try shows until the work goes on", () => {
  const retries = (type: CanonicalEvent["type"], n = 1) => viewAfter(type, n).filter((i) => i.kind === "retry");
  expect(retries("request.failed", 2)).toMatchObject([{ code: "MODEL_RATE_LIMITED", try: 2, tries: 3, pause: 1000, step: undefined }]);
  expect(retries("run.failed")).toEqual([]);
  expect(retries("retry.scheduled")).toMatchObject([{ try: 1, tries: 2, pause: 2000, step: "s1" }]);
  expect(retries("job.started", 3)).toEqual([]);
});

test("calls that a model refuses are failed with their reason, and the pauses after them have it too", () => {
  const w = new BarsBuilder();
  for (const e of events) w.take(e);
  const bars = w.bars.bars.filter((b) => b.kind === "model" || b.kind === "pause");
  const limited = "MODEL_RATE_LIMITED";
  expect(bars.map((b) => [b.kind, b.kind === "pause" ? b.name : b.id.slice(6), b.state, b.reason])).toEqual([
    ["model", "a1", "failed", limited],
    ["pause", limited, "completed", undefined],
    ["model", "a2", "failed", limited],
    ["pause", limited, "completed", undefined],
    ["model", "a3", "failed", limited],
    ["model", "bj1", "failed", limited],
    ["model", "bj3", "completed", undefined],
    ["pause", limited, "completed", undefined],
    ["model", "bj1b", "failed", limited],
  ]);
  expect(w.bars.bars.find((b) => b.id === "run run_1")).toMatchObject({ state: "failed", reason: limited });
});

test("codes are said in words", () => {
  expect(problem("MODEL_RATE_LIMITED")).toBe("Rate limited");
  expect(problem("ATTEMPTS_OVER")).toBe("Attempts over");
  expect(problem("already words")).toBe("already words");
  expect([isRefusal("MODEL_RATE_LIMITED"), isRefusal("MODEL_FAILED")]).toEqual([true, false]);
});
