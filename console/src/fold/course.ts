import type { Asking, Attempt, Child, TaskCall, TaskState } from "./task.ts";

/** Something that happened while an agent had a task. */
export type Entry =
  | { kind: "call"; seq: number; of: TaskCall }
  | { kind: "child"; seq: number; of: Child }
  | { kind: "question"; seq: number; of: Asking }
  | { kind: "note"; seq: number; of: TaskState["notes"][number] };

/** An attempt at a task with what happened in it, in the order of the log. */
export interface Leg {
  /** undefined: the log has no attempt before these. */
  attempt: Attempt | undefined;
  entries: readonly Entry[];
}

/** The course of a task: its attempts, each with what happened before the next one. */
export function course(task: Pick<TaskState, "attempts" | "calls" | "children" | "questions" | "notes">): readonly Leg[] {
  const entries: Entry[] = [
    ...task.calls.map((of) => ({ kind: "call", seq: of.seq, of }) as const),
    ...task.children.map((of) => ({ kind: "child", seq: of.seq, of }) as const),
    ...task.questions.map((of) => ({ kind: "question", seq: of.seq, of }) as const),
    ...task.notes.map((of) => ({ kind: "note", seq: of.seq, of }) as const),
  ].sort((a, b) => a.seq - b.seq);
  const begins = [...task.attempts].sort((a, b) => a.seq - b.seq);
  const legs = [undefined, ...begins].map((attempt, i) => {
    const [from, to] = [attempt?.seq ?? 0, begins[i]?.seq ?? Number.POSITIVE_INFINITY];
    return { attempt, entries: entries.filter((e) => e.seq >= from && e.seq < to) };
  });
  return legs.filter((l) => l.attempt !== undefined || l.entries.length > 0);
}
