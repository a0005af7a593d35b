import type { TaskSummary } from "@waggle-dev/client";

/** So many tasks of an agent are shown with it. */
const most = 3;

/** The last tasks that an agent has or had, of tasks with the newest change first: those that are not over stand on top. */
export function lastTasks(agent: string, all: readonly TaskSummary[]): readonly TaskSummary[] {
  const own = all.filter((x) => x.agent_id === agent);
  return [...own.filter((x) => !x.ended_at), ...own.filter((x) => x.ended_at)].slice(0, most);
}
