import type { Installation } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { lively, Reading } from "../../model/installation.ts";
import { Id, Text, Time } from "../../parts/basics.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";

/** Which version each replica of each role runs, and NATS. */
export function Versions(): JSX.Element {
  const look = useMemo(() => new Reading<Installation>("/api/v1/installation", lively), []);
  useEffect(() => () => look.close(), [look]);
  const all = look.value.value;
  return (
    <Shown of={look} value={all} rows={8}>
      {all && (
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
                <th scope="row">{p.role}</th>
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
