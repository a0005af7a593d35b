import type { Rate, RateList, RateProcess } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { span } from "../../app.ts";
import { lively, Reading } from "../../model/installation.ts";
import { Id } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { language, t, type Word } from "../../words.ts";

const width = 180;
const height = 28;

const figure = (n: number) => n.toLocaleString(language(), { maximumSignificantDigits: 3 });

const took = (ms: number | undefined) => (ms === undefined ? <small>{t("rates.none")}</small> : ms < 1000 ? `${figure(ms)} ms` : span(ms));

/** How often things happen, and how long they take, in all processes. */
export function Rates(): JSX.Element {
  const rates = useMemo(() => new Reading<RateList>("/api/v1/rates", lively), []);
  useEffect(() => () => rates.close(), [rates]);
  const all = rates.value.value;
  return (
    <Shown of={rates} value={all} rows={8}>
      {all && (
        <>
          <p class="about">{t("rates.about")}</p>
          <details class="sources">
            <summary>
              {t(all.processes.length === 1 ? "rates.from1" : "rates.from", { n: all.processes.length, roles: roles(all.processes) })}
            </summary>
            <Processes all={all.processes} />
          </details>
          {all.missing.length > 0 && (
            <div class="loud" role="alert">
              <Icon name="unknown" />
              <div>
                {t(all.missing.length === 1 ? "rates.missing1" : "rates.missing", { n: all.missing.length })}
                <Processes all={all.missing} />
              </div>
            </div>
          )}
          <Table
            title={t("installation.rates")}
            quiet
            look="rates"
            columns={["rates.what", "rates.recent", "rates.p50", "rates.p99", "rates.past"]}
          >
            {all.rates.map((r) => (
              <tr key={r.name}>
                <th scope="row">
                  {t(`rates.${r.name}` as Word)}
                  <small>{t(`rates.${r.name}.about` as Word)}</small>
                </th>
                <td data-label={t("rates.recent")}>{t("rates.second", { n: figure(r.recent) })}</td>
                <td data-label={t("rates.p50")}>{took(r.p50_ms)}</td>
                <td data-label={t("rates.p99")}>{took(r.p99_ms)}</td>
                <td class="past">
                  <Line rate={r} seconds={all.seconds} />
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </Shown>
  );
}

/** The roles of processes, each with the number of those that have it. */
function roles(all: readonly RateProcess[]): string {
  const count = new Map<string, number>();
  for (const role of all.flatMap((p) => p.roles)) count.set(role, (count.get(role) ?? 0) + 1);
  return [...count].map(([role, n]) => (n === 1 ? role : `${role} × ${n}`)).join(", ");
}

function Processes({ all }: { all: readonly RateProcess[] }): JSX.Element {
  return (
    <ul class="processes">
      {all.map((p) => (
        <li key={p.instance}>
          <b>{p.roles.join(", ")}</b> <Id value={p.instance} />
        </li>
      ))}
    </ul>
  );
}

/** The last quarter of an hour as a line, the newest point at its right end. */
function Line({ rate, seconds }: { rate: Rate; seconds: number }): JSX.Element {
  const most = Math.max(...rate.points, 0.001);
  const first = width - rate.points.length;
  const at = rate.points.map((p, i) => `${first + i} ${(height - 1 - (p / most) * (height - 2)).toFixed(1)}`);
  const label = t("rates.line", { most: figure(Math.max(...rate.points, 0)), minutes: Math.ceil((rate.points.length * seconds) / 60) });
  return (
    <svg class="line" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      {at.length > 0 && (
        <>
          <path class="area" d={`M${first} ${height} L${at.join(" L")} L${width - 1} ${height} Z`} />
          <path class="edge" d={`M${at.join(" L")}`} />
        </>
      )}
    </svg>
  );
}
