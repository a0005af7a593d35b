import type { TaskSummary } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { lastTasks } from "../src/fold/swarm.ts";

test("an agent is shown with its last tasks, those that are not over on top", () => {
  const task = (task_id: string, agent_id: string, ended_at?: string) =>
    ({ task_id, agent_id, ...(ended_at ? { ended_at } : {}) }) as TaskSummary;
  const all = [task("a", "x", "t"), task("b", "y"), task("c", "x"), task("d", "x", "t"), task("e", "x"), task("f", "x")];
  expect(lastTasks("x", all).map((t) => t.task_id)).toEqual(["c", "e", "f"]);
  expect(lastTasks("x", all.slice(0, 4)).map((t) => t.task_id)).toEqual(["c", "a", "d"]);
  expect(lastTasks("z", all)).toEqual([]);
});
