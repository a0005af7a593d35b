import type { DeadLetter, Installation, QueueList, Status } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { now, span } from "../../app.ts";
import { lively, type Pages, Reading } from "../../model/installation.ts";
import { Text } from "../../parts/basics.tsx";
import { later } from "../../parts/later.tsx";
import { LevelChip } from "../../parts/level.tsx";
import { Link } from "../../parts/link.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { Wrong } from "../../parts/wrong.tsx";
import { type Route, room } from "../../route.ts";
import { t } from "../../words.ts";
import { part } from "./part.tsx";

/** A command that waits longer than this has no service that takes it, or one that is too slow. */
const waitsLong = 30_000;

const Checks = later(() => import("./checks.tsx").then((m) => m.Checks));
const WrongNow = later(() => import("./checks.tsx").then((m) => m.WrongNow), true);
const Charts = later(() => import("./charts.tsx").then((m) => m.Charts));
const ModelTrials = later(() => import("./trials.tsx").then((m) => m.ModelTrials));

const to = (tab: "queues" | "dead"): Route => ({ ...room("installation"), tab }) as Route;

/** The roles, models and tool servers, with what is wrong with them; for operators also what waits. */
export function Health(p: { queues: Reading<QueueList> | undefined; letters: Pages<DeadLetter> | undefined }): JSX.Element {
  const status = useMemo(() => new Reading<Status>("/api/v1/status"), []);
  const operates = p.queues !== undefined;
  const look = useMemo(() => (operates ? new Reading<Installation>("/api/v1/installation", lively) : undefined), [operates]);
  useEffect(() => () => [status, look].forEach((r) => void r?.close()), [status, look]);
  const s = status.value.value;
  return (
    <Shown of={status} value={s} rows={8}>
      {s && (
        <>
          {look && <WrongNow look={look} />}
          {look && <Charts />}
          <p class="about">{t("installation.version", { version: s.version ?? "" })}</p>
          {look && <Checks look={look} />}
          {p.queues && p.letters && <Waiting queues={p.queues} letters={p.letters} />}
          <Table look="health" title={t("health.roles")} columns={["health.name", "health.state", "health.replicas"]}>
            {(s.services ?? []).map((x) => (
              <tr key={x.name}>
                <th scope="row">{operates ? <Link to={part({ role: x.name })}>{x.name}</Link> : x.name}</th>
                <td>
                  <LevelChip level={x.replicas > 0 ? "ok" : "fail"} />
                  {x.replicas === 0 && <small>{t("health.start", { role: x.name })}</small>}
                </td>
                <td data-label={t("health.replicas")}>{x.replicas}</td>
              </tr>
            ))}
          </Table>
          <Table look="health" title={t("health.models")} columns={["health.name", "health.state", "health.workers"]}>
            {(s.models ?? []).map((x) => (
              <tr key={x.name}>
                <th scope="row">
                  <Text>{x.name}</Text>
                </th>
                <td>
                  <LevelChip level={x.trouble ? "warn" : "ok"} />
                  {x.trouble && (
                    <small>
                      <Text most={300}>{x.trouble}</Text>
                    </small>
                  )}
                </td>
                <td data-label={t("health.workers")}>{x.workers}</td>
              </tr>
            ))}
          </Table>
          {p.queues && <ModelTrials />}
          {(s.tool_servers ?? []).length > 0 && (
            <Table look="health" title={t("health.tools")} columns={["health.name", "health.state", "health.replicas"]}>
              {(s.tool_servers ?? []).map((x) => (
                <tr key={x.name}>
                  <th scope="row">
                    <Text>{x.name}</Text>
                  </th>
                  <td>
                    <LevelChip level={x.down === 0 ? (x.left_out ? "warn" : "ok") : x.down < x.replicas ? "warn" : "fail"} />
                    {x.down > 0 && <small>{t("health.down", { n: x.down })}</small>}
                    <Wrong trouble={x.trouble} left={x.left_out} />
                  </td>
                  <td data-label={t("health.replicas")}>{x.replicas}</td>
                </tr>
              ))}
            </Table>
          )}
        </>
      )}
    </Shown>
  );
}

/** What waits in queues, and what was given up. */
function Waiting({ queues, letters }: { queues: Reading<QueueList>; letters: Pages<DeadLetter> }): JSX.Element | null {
  const q = queues.value.value;
  const dead = letters.value.value?.total;
  if (!q || dead === undefined) return null;
  const waits = (q.queues ?? []).reduce((n, x) => n + x.waiting + x.out, 0);
  const age = q.oldest ? Math.max(0, now.value - Date.parse(q.oldest)) : 0;
  return (
    <Table look="health" title={t("health.work")} columns={["health.name", "health.state"]}>
      <tr>
        <th scope="row">
          <Link to={to("queues")}>{t("installation.queues")}</Link>
        </th>
        <td>
          <LevelChip level={waits > 0 && age > waitsLong ? "warn" : "ok"} />
          <small>{waits === 0 ? t("health.idle") : t("health.waits", { n: waits, age: span(age) })}</small>
        </td>
      </tr>
      <tr>
        <th scope="row">
          <Link to={to("dead")}>{t("installation.dead")}</Link>
        </th>
        <td>
          <LevelChip level={dead > 0 ? "warn" : "ok"} />
          <small>{t(dead === 0 ? "health.none" : dead === 1 ? "health.dead1" : "health.dead", { n: dead })}</small>
        </td>
      </tr>
    </Table>
  );
}
