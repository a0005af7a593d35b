import type { CanonicalEvent } from "@waggle-dev/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { course } from "../src/fold/course.ts";
import { TaskBuilder } from "../src/fold/task.ts";
import { trace } from "../src/fold/trace.ts";
import { Marks } from "../src/log/lines.ts";

/** Folds events of a task, one a second. */
function folded(all: readonly (readonly [type: string, data: object])[]): { task: TaskBuilder; events: CanonicalEvent[] } {
  const task = new TaskBuilder();
  const events = all.map(([type, data], i) => {
    const [sequence, time] = [i + 1, new Date((i + 1) * 1000).toISOString()];
    return { type, data, time, sequence, id: String(sequence) } as unknown as CanonicalEvent;
  });
  for (const e of events) task.take(e);
  return { task, events };
}

const told = folded([
  ["task.created", { task_type: "report", wanted_name: "Reporter", data: {} }],
  ["task.queued", { reason: "offline" }],
  ["task.assigned", { attempt: 1, agent_name: "Reporter" }],
  ["call.started", { call_id: "c1", tool: "lookup", server: "crm" }],
  ["call.finished", { call_id: "c1", status: "unknown" }],
  ["task.asked", { input_id: "q1", message: "Which quarter?" }],
  ["task.released", { attempt: 1, reason: "agent_lost" }],
  ["task.assigned", { attempt: 2, agent_name: "Reporter" }],
  ["task.refused", { attempt: 1, by: "other", what: "result" }],
  ["child.created", { child_id: "t2", child_agent_name: "Printer", task_type: "print" }],
  ["task.notified", { message: "Half way" }],
  ["task.finished", { status: "failed", code: "TASK_EXECUTION_ERROR", error: "out of paper" }],
]);

test("the course of a task has what happened under the attempt in which it did", () => {
  const said = course(told.task.state).map((l) => [l.attempt?.n, l.attempt?.lost, l.entries.map((e) => `${e.kind} ${e.seq}`)]);
  expect(said).toEqual([
    [1, true, ["call 4", "question 6"]],
    [2, false, ["child 10", "note 11"]],
  ]);
});

test("the trace of a task has its attempts below it, and what their agents did below these", () => {
  expect(trace(told.task.bars.bars).map((b) => `${"  ".repeat(b.depth)}${b.bar.id}`)).toEqual([
    "task",
    "  queue 2",
    "  attempt 1",
    "    call c1",
    "    ask q1",
    "  attempt 2",
    "    child t2",
  ]);
});

test("questions, lost agents, unknown calls and the failure of a task stand out on the slider", () => {
  const marks = new Marks();
  for (const e of told.events) marks.note(e);
  expect(marks.take().map((m) => `${m.seq} ${m.kind}`)).toEqual(["12 failed", "7 takeover", "6 people", "5 unknown"]);
});

const entry = <T extends object>(of: fc.Arbitrary<T>) => fc.array(of, { maxLength: 6 });
const id = fc.string();
const some = fc.record({
  attempts: fc.nat(5),
  calls: entry(fc.record({ id, tool: id, provider: id, status: fc.constant("running" as const), error: id, ms: fc.constant(undefined) })),
  children: entry(fc.record({ id, agent: id, type: id, status: id })),
  questions: entry(fc.record({ id, message: id, state: fc.constant("waiting" as const), answer: id, by: id })),
  notes: entry(fc.record({ at: id, text: id })),
});

test("a course has all that happened once, in the order of the log, and none of it before its attempt", () => {
  fc.assert(
    fc.property(some, fc.infiniteStream(fc.nat()), (s, order) => {
      const all = s.attempts + s.calls.length + s.children.length + s.questions.length + s.notes.length;
      const seqs = Array.from({ length: all }, (_, i) => [order.next().value as number, i + 1] as const)
        .sort((a, b) => a[0] - b[0])
        .map(([, seq]) => seq);
      const put = <T extends object>(list: readonly T[]) => list.map((x) => ({ ...x, seq: seqs.pop() as number }));
      const attempts = put(Array.from({ length: s.attempts }, () => ({})))
        .sort((a, b) => a.seq - b.seq)
        .map((a, i) => ({ ...a, n: i + 1, agent: "a", from: "", to: undefined, says: "", end: "", lost: false, refused: 0 }));
      const legs = course({
        attempts,
        calls: put(s.calls),
        children: put(s.children),
        questions: put(s.questions),
        notes: put(s.notes),
      });
      expect(legs.flatMap((l) => l.attempt ?? []).map((a) => a.n)).toEqual(attempts.map((a) => a.n));
      const shown = legs.flatMap((l) => [...(l.attempt ? [l.attempt.seq] : []), ...l.entries.map((e) => e.seq)]);
      expect(shown).toEqual(Array.from({ length: all }, (_, i) => i + 1));
    }),
  );
});
