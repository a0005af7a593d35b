import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { now, span } from "../../app.ts";
import { taskList } from "../../model/swarm.ts";
import { StateChip, Text } from "../../parts/basics.tsx";
import { Link } from "../../parts/link.tsx";
import { Table } from "../../parts/table.tsx";
import { t, type Word } from "../../words.ts";
import { type Filtered, has, Listed } from "./listed.tsx";

/** The sign and the word for the status of a task. */
export function chipOf(status: string): string {
  return { created: "queued", waiting_input: "waiting" }[status] ?? status;
}

const reasons: readonly string[] = ["agent_lost", "not_delivered", "forgotten", "silent", "offline", "busy", "released"];

/** Why an agent lost a task, or why it waits for one, for people. */
export function reasonOf(reason: string): string {
  return reasons.includes(reason) ? t(`reason.${reason}` as Word) : reason;
}

/** The tasks of the swarm, the newest change first. */
export function Tasks(p: Filtered): JSX.Element {
  const list = useMemo(taskList, []);
  return (
    <Listed of={list} what="tasks" {...p} fits={(x) => has(p.filter, x.task_id, x.agent_name, x.task_type, x.status, x.released)}>
      {(rows) => (
        <Table
          title={t("swarm.tasks")}
          quiet
          look="tasks"
          columns={["task.title", "swarm.state", "task.agent", "task.attempt", "task.released", "task.age"]}
        >
          {rows.map((x) => (
            <tr key={x.task_id}>
              <th scope="row">
                <Link to={{ room: "task", id: x.task_id, view: "work" }}>
                  <Text most={60}>{x.task_type || x.task_id}</Text>
                </Link>
                {x.task_type && (
                  <small>
                    <Text most={60}>{x.task_id}</Text>
                  </small>
                )}
              </th>
              <td data-label={t("swarm.state")}>
                <StateChip state={chipOf(x.status)} />
              </td>
              <td data-label={t("task.agent")}>
                <Text>{x.agent_name || x.agent_id || ""}</Text>
              </td>
              <td data-label={t("task.attempt")} class="number">
                {x.attempt || ""}
              </td>
              <td data-label={t("task.released")}>{x.released && <Text>{reasonOf(x.released)}</Text>}</td>
              <td data-label={t("task.age")}>{span(Math.max(0, Math.floor((now.value - Date.parse(x.created_at)) / 1000) * 1000))}</td>
            </tr>
          ))}
        </Table>
      )}
    </Listed>
  );
}
