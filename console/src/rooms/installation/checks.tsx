import type { Installation } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { lively, Reading } from "../../model/installation.ts";
import { Text } from "../../parts/basics.tsx";
import { type Level, LevelChip } from "../../parts/level.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";

/** What the checks of `waggle doctor` find in the installation, each with its remedy. */
export function Checks(): JSX.Element {
  const look = useMemo(() => new Reading<Installation>("/api/v1/installation", lively), []);
  useEffect(() => () => look.close(), [look]);
  const all = look.value.value?.findings;
  return (
    <Shown of={look} value={all} rows={6}>
      <Table look="health checks" title={t("checks.title")} columns={["checks.what", "health.state", "checks.is"]}>
        {all?.map((f) => (
          <tr key={f.what}>
            <th scope="row">{f.what}</th>
            <td>
              <LevelChip level={f.level.toLowerCase() as Level} />
            </td>
            <td class="value">
              {f.is.split("\n").map((line) => (
                <div key={line}>
                  <Text most={300}>{line}</Text>
                </div>
              ))}
              {f.do && (
                <small>
                  <Text most={600}>{f.do}</Text>
                </small>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Shown>
  );
}
