import type { Installation, QueueList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { lively, Reading } from "../../model/installation.ts";
import { Id, Text, Time } from "../../parts/basics.tsx";
import { Link } from "../../parts/link.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";
import { Part, part } from "./part.tsx";

/** Which version each replica of each role runs, and NATS; or one role or one replica. */
export function Versions({
  role,
  instance,
  queues,
}: {
  role: string | undefined;
  instance: string | undefined;
  queues: Reading<QueueList> | undefined;
}): JSX.Element {
  const look = useMemo(() => new Reading<Installation>("/api/v1/installation", lively), []);
  useEffect(() => () => look.close(), [look]);
  const all = look.value.value;
  return (
    <Shown of={look} value={all} rows={8}>
      {all && (role || instance) && <Part all={all} role={role} instance={instance} queues={queues?.value.value} />}
      {all && !role && !instance && (
        <>
          <p class="about">
            <Text>{`NATS ${all.nats.version}${all.nats.name ? ` (${all.nats.name})` : ""}`}</Text>
            {". "}
            {t(all.up_to_date ? "versions.one" : "versions.many")}
          </p>
          <Table
            title={t("installation.versions")}
            quiet
            look="versions"
            columns={["versions.role", "versions.version", "versions.go", "versions.since", "versions.instance"]}
          >
            {all.processes.map((p) => (
              <tr key={`${p.role} ${p.instance}`}>
                <th scope="row">
                  <Link to={part({ role: p.role })}>{p.role}</Link>
                </th>
                <td data-label={t("versions.version")}>
                  <Text>{p.version ?? t("versions.unknown")}</Text>
                </td>
                <td data-label={t("versions.go")}>
                  <Text>{p.go ?? t("versions.unknown")}</Text>
                </td>
                <td data-label={t("versions.since")}>
                  <Time at={p.started} />
                </td>
                <td data-label={t("versions.instance")}>
                  <Link to={part({ instance: p.instance })} label={t("part.open", { instance: p.instance })}>
                    {t("part.replica")}
                  </Link>{" "}
                  <Id value={p.instance} />
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </Shown>
  );
}
