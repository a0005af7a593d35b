import type { Participant, TaskSummary } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { lastTasks } from "../../fold/swarm.ts";
import { List } from "../../model/lists.ts";
import { taskList } from "../../model/swarm.ts";
import { StateChip, Text, Time } from "../../parts/basics.tsx";
import { Link } from "../../parts/link.tsx";
import { t } from "../../words.ts";
import { type Filtered, has, Listed, Presence, Words } from "./listed.tsx";
import { chipOf } from "./tasks.tsx";

/** The agents of the swarm, each with what it has done last. */
export function Agents(p: Filtered): JSX.Element {
  const list = useMemo(
    () =>
      new List<Participant>(
        "agents",
        "/api/v1/agents?limit=200",
        (a) => a.id,
        (a, b) => (a.name + a.id < b.name + b.id ? -1 : 1),
      ),
    [],
  );
  const tasks = useMemo(taskList, []);
  useEffect(() => () => tasks.close(), [tasks]);
  return (
    <Listed of={list} what="agents" {...p} fits={(a) => has(p.filter, a.name, a.id, a.status, ...(a.capabilities ?? []))}>
      {(rows) => (
        <>
          <h2 class="only-read">{t("swarm.agents")}</h2>
          <ul class="agents">
            {rows.map((a) => (
              <Agent key={a.id} a={a} tasks={lastTasks(a.id, tasks.rows.value ?? [])} />
            ))}
          </ul>
        </>
      )}
    </Listed>
  );
}

function Agent({ a, tasks }: { a: Participant; tasks: readonly TaskSummary[] }): JSX.Element {
  return (
    <li class={a.online ? "" : "away"}>
      <header>
        <h3>
          <Text>{a.name}</Text>
        </h3>
        <Presence here={a.online} />
      </header>
      <p class="about">
        <Text most={200}>{a.description ?? a.id}</Text>
      </p>
      <Words all={a.capabilities ?? []} />
      <p class="load">
        {t(a.load === 1 ? "agent.load.one" : "agent.load", { n: a.load })} · {t("swarm.since")} <Time at={a.since} />
        {a.online && a.status !== "active" && (
          <>
            {" · "}
            <Text most={40}>{a.status}</Text>
          </>
        )}
      </p>
      {tasks.length > 0 && (
        <ul class="last" aria-label={t("agent.last")}>
          {tasks.map((x) => (
            <li key={x.task_id}>
              <StateChip state={chipOf(x.status)} small />
              <Link to={{ room: "task", id: x.task_id, view: "work" }}>
                <Text most={60}>{x.task_type || t("agent.task", { id: x.task_id.slice(0, 8) })}</Text>
              </Link>
              <Time at={x.updated_at} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
