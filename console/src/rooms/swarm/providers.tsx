import type { Participant } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { List } from "../../model/lists.ts";
import { Face, Failure, Skeleton, Text, Time } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";
import { type Filtered, has, Presence, Words } from "./listed.tsx";

interface Provider {
  kind: string;
  id: string;
  name: string;
  about: string;
  here: boolean;
  tools: string[];
  replicas: number;
  since: string;
}

/** Where tools come from: services of the swarm, and MCP servers. */
export function Providers(p: Filtered): JSX.Element {
  const [services, servers] = useMemo(
    () =>
      ["services", "mcp"].map(
        (path) =>
          new List<Participant>(
            path === "mcp" ? "servers" : path,
            `/api/v1/${path}?limit=200`,
            (a) => `${a.id} ${a.since} ${a.kind}`,
            (a, b) => (a.name < b.name ? -1 : 1),
          ),
      ) as [List<Participant>, List<Participant>],
    [],
  );
  useEffect(() => () => [services, servers].forEach((l) => void l.close()), [services, servers]);
  const failed = [services, servers].find((l) => l.error.value && !l.rows.value);
  if (failed) return <Failure error={failed.error.value} again={() => void failed.read()} />;
  if (!services.rows.value || !servers.rows.value) return <Skeleton />;
  const all = [...gathered(servers.rows.value), ...gathered(services.rows.value)];
  if (all.length === 0) return <Face title={t("swarm.providers.empty")} text={t("swarm.providers.empty.text")} />;
  const rows = all.filter((r) => has(p.filter, r.name, r.id, r.kind, ...r.tools));
  if (rows.length === 0) return <Face title={t("face.nothing")} action={{ text: t("face.clear"), go: p.clear }} />;
  return (
    <Table
      title={t("swarm.providers")}
      quiet
      look="providers"
      columns={["swarm.name", "swarm.kind", "swarm.state", "swarm.tools", "swarm.replicas", "swarm.since"]}
    >
      {rows.map((r) => (
        <tr key={`${r.kind} ${r.id}`}>
          <th scope="row">
            <Text>{r.name}</Text>
            {(r.about || r.id !== r.name) && (
              <small>
                <Text most={200}>{r.about || r.id}</Text>
              </small>
            )}
          </th>
          <td data-label={t("swarm.kind")}>
            <Text>{r.kind}</Text>
          </td>
          <td data-label={t("swarm.state")}>
            <Presence here={r.here} />
          </td>
          <td data-label={t("swarm.tools")}>
            <Words all={r.tools} />
          </td>
          <td data-label={t("swarm.replicas")} class="number">
            {r.replicas}
          </td>
          <td data-label={t("swarm.since")}>{r.since && !r.since.startsWith("0001") && <Time at={r.since} />}</td>
        </tr>
      ))}
    </Table>
  );
}

/** One row for all connections of a service. */
function gathered(rows: readonly Participant[]): Provider[] {
  const all = new Map<string, Provider>();
  for (const a of rows) {
    const known = all.get(a.id);
    const tools = (a.tools ?? []).map((x) => x.id);
    if (known) {
      known.here ||= a.online;
      if (a.online) known.replicas++;
      for (const x of tools) if (!known.tools.includes(x)) known.tools.push(x);
    } else {
      const kind = a.kind === "mcp" ? String((a.extra as { type?: string } | undefined)?.type ?? "mcp") : a.kind;
      const about = a.description ?? "";
      const own = a.kind === "mcp" ? [...(a.capabilities ?? [])] : tools;
      all.set(a.id, { kind, id: a.id, name: a.name, about, here: a.online, tools: own, replicas: a.online ? 1 : 0, since: a.since });
    }
  }
  return [...all.values()];
}
