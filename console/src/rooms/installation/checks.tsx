import type { Installation } from "@waggle-dev/client";
import type { JSX } from "preact";
import { troubles } from "../../fold/charts.ts";
import type { Reading } from "../../model/installation.ts";
import { Text } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icons.tsx";
import { type Level, LevelChip } from "../../parts/level.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../words.ts";

function Lines({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text.split("\n").map((line) => (
        <div key={line}>
          <Text most={300}>{line}</Text>
        </div>
      ))}
    </>
  );
}

/** What is wrong now, each with its remedy; or that nothing is. */
export function WrongNow({ look }: { look: Reading<Installation> }): JSX.Element | null {
  const all = look.value.value?.findings;
  if (!all) return null;
  const wrong = troubles(all);
  if (wrong.length === 0)
    return (
      <p class="wrong-now state-completed" role="status">
        <Icon name="tick" />
        <b>{t("wrong.none")}</b>
        <span>{t("wrong.none.text", { n: all.length })}</span>
      </p>
    );
  return (
    <section class="wrong" aria-labelledby="wrong-now">
      <h2 id="wrong-now">{t("wrong.title")}</h2>
      <ul>
        {wrong.map((w) => (
          <li key={w.what} class={w.level === "fail" ? "state-failed" : "state-waiting"}>
            <Icon name={w.level === "fail" ? "cross" : "clock"} />
            <div>
              <b>{w.what}</b>
              <Lines text={w.is} />
              {w.remedy && (
                <p class="remedy">
                  <Text most={600}>{w.remedy}</Text>
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What the checks of `waggle doctor` find in the installation, each with its remedy. */
export function Checks({ look }: { look: Reading<Installation> }): JSX.Element {
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
              <Lines text={f.is} />
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
