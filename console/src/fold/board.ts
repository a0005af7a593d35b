import type { Task } from "./team.ts";

/** The states of a task on a board, in the order of its columns. */
export const statuses = ["not_started", "queued", "in_progress", "blocked", "completed", "failed"] as const;

/** A column of a board. */
export interface Column {
  status: string;
  tasks: readonly Task[];
}

/** Puts each task into the column of its state. A state that this console does not know has a column of its own, the last. */
export function columns(tasks: readonly Task[]): Column[] {
  const all = new Map<string, Task[]>(statuses.map((s) => [s, []]));
  for (const task of tasks) {
    const list = all.get(task.status);
    if (list) list.push(task);
    else all.set(task.status, [task]);
  }
  return [...all].map(([status, list]) => ({ status, tasks: list }));
}
