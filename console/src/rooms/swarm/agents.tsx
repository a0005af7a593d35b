import type { Participant } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { List } from "../../model/lists.ts";
import { Text, Time } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";
import { type Filtered, has, Listed, Presence, Words } from "./listed.tsx";

/** The agents of the swarm. */
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
  return (
    <Listed of={list} what="agents" {...p} fits={(a) => has(p.filter, a.name, a.id, a.status, ...(a.capabilities ?? []))}>
      {(rows) => (
        <Table
          title={t("swarm.agents")}
          quiet
          look="agents"
          columns={["swarm.name", "swarm.state", "swarm.can", "swarm.load", "swarm.since"]}
        >
          {rows.map((a) => (
            <tr key={a.id}>
              <th scope="row">
                <Text>{a.name}</Text>
                <small>
                  <Text most={200}>{a.description ?? a.id}</Text>
                </small>
              </th>
              <td data-label={t("swarm.state")}>
                <Presence here={a.online} />
                {a.online && a.status !== "active" && (
                  <small>
                    <Text most={40}>{a.status}</Text>
                  </small>
                )}
              </td>
              <td data-label={t("swarm.can")}>
                <Words all={a.capabilities ?? []} />
              </td>
              <td data-label={t("swarm.load")} class="number">
                {a.load}
              </td>
              <td data-label={t("swarm.since")}>
                <Time at={a.since} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Listed>
  );
}
