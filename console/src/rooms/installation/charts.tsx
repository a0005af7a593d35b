import type { RateList } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { clock, span } from "../../app.ts";
import { type Minute, minutesOf, type Timed, timed } from "../../fold/charts.ts";
import { lively, Reading } from "../../model/installation.ts";
import { Chart } from "../../parts/chart.tsx";
import { Shown } from "../../parts/reading.tsx";
import { Table } from "../../parts/table.tsx";
import { language, t } from "../../words.ts";

const count = (n: number) => n.toLocaleString(language());
const short = (n: number) => n.toLocaleString(language(), { notation: "compact", maximumSignificantDigits: 3 });
const dollars = (n: number) => n.toLocaleString(language(), { style: "currency", currency: "USD", maximumFractionDigits: n < 0.1 ? 4 : 2 });
const took = (ms: number | undefined) =>
  ms === undefined ? "–" : ms < 10 ? `${ms.toLocaleString(language(), { maximumFractionDigits: 1 })} ms` : span(ms);

const sum = (all: readonly Minute[], of: (m: Minute) => number) => all.reduce((n, m) => n + of(m), 0);

/** What the installation has done in the last quarter of an hour: four charts, and the same as a table. */
export function Charts(): JSX.Element {
  const rates = useMemo(() => new Reading<RateList>("/api/v1/rates", lively), []);
  useEffect(() => () => rates.close(), [rates]);
  const [of, time] = useState<Timed>("models");
  const [over, point] = useState<number | undefined>(undefined);
  const list = rates.value.value;
  const all = useMemo(() => (list ? minutesOf(list, of) : []), [list, of]);
  return (
    <Shown of={rates} value={list} rows={4}>
      {list && (
        <>
          <h2 class="only-read">{t("charts.title")}</h2>
          <Four all={all} list={list} of={of} time={time} over={over} point={point} />
          <details class="numbers">
            <summary>{t("charts.table")}</summary>
            <Numbers all={all} taken={list.taken_at} />
          </details>
          {list.missing.length > 0 && (
            <p class="fault" role="alert">
              {t(list.missing.length === 1 ? "rates.missing1" : "rates.missing", { n: list.missing.length })}
            </p>
          )}
        </>
      )}
    </Shown>
  );
}

function Four(p: {
  all: readonly Minute[];
  list: RateList;
  of: Timed;
  time: (of: Timed) => void;
  over: number | undefined;
  point: (i: number | undefined) => void;
}): JSX.Element {
  const { all } = p;
  const one = p.over === undefined ? undefined : all[p.over];
  const shown = one ? [one] : all;
  const until = Date.parse(p.list.taken_at);
  const minute = (ago: number) => clock(until - ago * 60_000).slice(0, -3);
  const when = one ? `${minute(one.ago)} · ` : "";
  const rate = p.list.rates.find((r) => r.name === p.of);
  const [p50, p99] = one ? [one.p50, one.p99] : [rate?.p50_ms, rate?.p99_ms];
  const [runs, failures, tokens, cost] = [
    sum(shown, (m) => m.runs),
    sum(shown, (m) => m.failures),
    sum(shown, (m) => m.tokens),
    sum(shown, (m) => m.cost),
  ];
  const priced = sum(all, (m) => m.cost) > 0;
  const said = {
    runs: t(runs === 1 ? "charts.run" : "charts.runs", { n: count(runs) }),
    times: t("charts.times", { p50: took(p50), p99: took(p99) }),
    tokens: t("charts.tokens.figure", { n: short(tokens) }) + (priced ? ` · ${dollars(cost)}` : ""),
    failures:
      failures === 0
        ? t("charts.failures.none")
        : t("charts.failures.figure", { n: count(failures), of: Math.round((100 * failures) / Math.max(1, runs)) }),
  };
  const counts = (of: (m: Minute) => number) => (all.some((m) => of(m) > 0) ? all.map(of) : []);
  const frame = { from: t("charts.ago", { n: all.length }), to: t("charts.now"), over: p.over, point: p.point };
  const label = (name: string, figure: string) => t("charts.label", { name, figure, n: all.length });
  return (
    <div class="charts">
      <Chart
        {...frame}
        title={t("charts.of.runs")}
        figure={when + said.runs}
        label={label(t("charts.of.runs"), said.runs)}
        bars
        series={[{ name: t("charts.of.runs"), look: "main", values: counts((m) => m.runs) }]}
        tick={count}
        none={t("charts.runs.empty")}
      />
      <Chart
        {...frame}
        title={t("charts.of.times")}
        figure={when + said.times}
        label={label(t(`charts.of.${p.of}`), said.times)}
        series={[
          { name: "p99", look: "second", values: all.map((m) => m.p99) },
          { name: "p50", look: "main", values: all.map((m) => m.p50) },
        ]}
        tick={took}
        none={t("charts.times.empty")}
      >
        <select aria-label={t("charts.which")} value={p.of} onChange={(e) => p.time(e.currentTarget.value as Timed)}>
          {timed.map((name) => (
            <option key={name} value={name}>
              {t(`charts.of.${name}`)}
            </option>
          ))}
        </select>
      </Chart>
      <Chart
        {...frame}
        title={t(priced ? "charts.of.spent" : "charts.of.tokens")}
        figure={when + said.tokens}
        label={label(t("charts.of.tokens"), said.tokens)}
        bars
        series={[{ name: t("charts.of.tokens"), look: "main", values: counts((m) => m.tokens) }]}
        tick={short}
        none={t("charts.tokens.empty")}
      />
      <Chart
        {...frame}
        title={t("charts.of.failures")}
        figure={when + said.failures}
        label={label(t("charts.of.failures"), said.failures)}
        bars
        series={[{ name: t("charts.of.failures"), look: "bad", values: counts((m) => m.failures) }]}
        tick={count}
        none={t("charts.failures.empty")}
      />
    </div>
  );
}

/** The charts as numbers, the newest minute first. */
function Numbers({ all, taken }: { all: readonly Minute[]; taken: string }): JSX.Element {
  return (
    <Table
      title={t("charts.title")}
      quiet
      look="minutes"
      columns={["charts.until", "charts.of.runs", "charts.of.failures", "rates.p50", "rates.p99", "charts.of.tokens", "charts.cost"]}
    >
      {all.toReversed().map((m) => (
        <tr key={m.ago}>
          <th scope="row">{clock(Date.parse(taken) - m.ago * 60_000)}</th>
          <td data-label={t("charts.of.runs")}>{count(m.runs)}</td>
          <td data-label={t("charts.of.failures")}>{count(m.failures)}</td>
          <td data-label={t("rates.p50")}>{took(m.p50)}</td>
          <td data-label={t("rates.p99")}>{took(m.p99)}</td>
          <td data-label={t("charts.of.tokens")}>{count(m.tokens)}</td>
          <td data-label={t("charts.cost")}>{dollars(m.cost)}</td>
        </tr>
      ))}
    </Table>
  );
}
