import type { Installation, QueueList, RateList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { now, span } from "../../app.ts";
import { lively, Reading } from "../../model/installation.ts";
import { Face, Id, Text, Time } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icons.tsx";
import { LevelChip } from "../../parts/level.tsx";
import { Link } from "../../parts/link.tsx";
import { Table } from "../../parts/table.tsx";
import { type Route, room } from "../../route.ts";
import { t, type Word } from "../../words.ts";

/** The address of a role or a replica. */
export const part = (of: { role?: string; instance?: string }): Route => ({ ...room("installation"), tab: "versions", ...of }) as Route;

const columns: readonly Word[] = ["versions.role", "health.state", "versions.version", "versions.go", "versions.since"];

/** A role with its replicas, or a replica with its roles: versions, since when it runs, whether it answers, and what waits for it. */
export function Part(p: {
  all: Installation;
  role: string | undefined;
  instance: string | undefined;
  queues: QueueList | undefined;
}): JSX.Element {
  const rates = useMemo(() => new Reading<RateList>("/api/v1/rates", lively), []);
  useEffect(() => () => rates.close(), [rates]);
  const rows = p.all.processes.filter((x) => (p.instance ? x.instance === p.instance : x.role === p.role));
  const silent = new Set((rates.value.value?.missing ?? []).map((x) => x.instance));
  const waits = (p.queues?.queues ?? []).filter((q) => rows.some((x) => x.role === q.service));
  return (
    <>
      <Link to={part({})} class="part-back">
        <Icon name="back" />
        {t("part.all")}
      </Link>
      <h2 class="part-name">
        <Text>{p.instance ? t("part.of", { instance: p.instance }) : t("part.role", { role: p.role ?? "" })}</Text>
      </h2>
      {rows.length === 0 ? (
        <Face title={t("part.none")} text={p.role ? t("health.start", { role: p.role }) : t("part.none.text")} />
      ) : (
        <Table title={t("installation.versions")} quiet look="versions" columns={p.instance ? columns : [...columns, "versions.instance"]}>
          {rows.map((x) => (
            <tr key={`${x.role} ${x.instance}`}>
              <th scope="row">{p.instance ? <Link to={part({ role: x.role })}>{x.role}</Link> : x.role}</th>
              <td>
                <LevelChip level={silent.has(x.instance) ? "warn" : "ok"} word={silent.has(x.instance) ? "part.silent" : "part.answers"} />
              </td>
              <td data-label={t("versions.version")}>
                <Text>{x.version ?? t("versions.unknown")}</Text>
              </td>
              <td data-label={t("versions.go")}>
                <Text>{x.go ?? t("versions.unknown")}</Text>
              </td>
              <td data-label={t("versions.since")}>
                <Time at={x.started} /> <small>{span(Math.max(0, now.value - Date.parse(x.started)))}</small>
              </td>
              {!p.instance && (
                <td data-label={t("versions.instance")}>
                  <Link to={part({ instance: x.instance })} label={t("part.open", { instance: x.instance })}>
                    {t("part.replica")}
                  </Link>{" "}
                  <Id value={x.instance} />
                </td>
              )}
            </tr>
          ))}
        </Table>
      )}
      {waits.length > 0 && (
        <Table title={t("part.waits")} look="queues" columns={["queues.service", "queues.waiting", "queues.out", "queues.redelivered"]}>
          {waits.map((q) => (
            <tr key={q.service}>
              <th scope="row">{q.service}</th>
              <td data-label={t("queues.waiting")}>{q.waiting}</td>
              <td data-label={t("queues.out")}>{q.out}</td>
              <td data-label={t("queues.redelivered")}>{q.redelivered}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
