import type { Participant } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { epoch, title } from "../app.ts";
import { List } from "../model/lists.ts";
import { Face, Failure, Skeleton, Text } from "../parts/basics.tsx";
import { Table } from "../parts/table.tsx";
import { t, type Word } from "../words.ts";

/** The agents and services that are connected. */
export function Swarm(): JSX.Element {
  useEffect(() => {
    title.value = t("swarm.title");
  }, []);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="page" tabIndex={0} aria-label={t("swarm.title")}>
      <h1>{t("swarm.title")}</h1>
      <Participants path="/api/v1/agents" member="agents" title="swarm.agents" empty />
      <Participants path="/api/v1/services" member="services" title="swarm.services" />
    </section>
  );
}

function Participants(p: { path: string; member: string; title: Word; empty?: boolean }): JSX.Element | null {
  const list = useMemo(
    () =>
      new List<Participant>(
        p.member,
        p.path,
        (a) => String(a.name),
        (a, b) => (String(a.name) < String(b.name) ? -1 : 1),
      ),
    [p.path, epoch.value],
  );
  useEffect(() => () => list.close(), [list]);
  const rows = list.rows.value;
  if (list.error.value && !rows) return <Failure error={list.error.value} again={() => void list.read()} />;
  if (!rows) return <Skeleton rows={2} />;
  if (rows.length === 0) return p.empty ? <Face title={t("swarm.empty")} text={t("swarm.empty.text")} /> : null;
  return (
    <Table title={t(p.title)} columns={["swarm.name", "swarm.kind", "swarm.load", "swarm.can"]}>
      {rows.map((a) => {
        const r = a as unknown as Record<string, unknown>;
        return (
          <tr key={String(r["name"])}>
            <th scope="row">
              <Text>{String(r["name"] ?? "")}</Text>
            </th>
            <td>
              <Text>{String(r["type"] ?? r["kind"] ?? "")}</Text>
            </td>
            <td>
              <Text>{String(r["status"] ?? "")}</Text>
            </td>
            <td>
              {((r["capabilities"] as string[] | undefined) ?? []).map((c) => (
                <span key={c} class="chip small">
                  <Text most={40}>{c}</Text>
                </span>
              ))}
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
