import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { clock, now, span } from "../app.ts";
import { axis, type Bar, WaterfallBuilder } from "../fold/waterfall.ts";
import type { SessionModel } from "../model/session.ts";
import { Face, StateChip, Text } from "../parts/basics.tsx";
import { t } from "../words.ts";

/** The bars of the newest runs are shown: a session may have thousands. */
const most = 400;

/** What took how long, as of the event at which the log is shown. */
export function Waterfall({ model, open }: { model: SessionModel; open: (seq: number) => void }): JSX.Element {
  const head = model.head.value;
  const at = model.at.value;
  const { bars, until } = useMemo(() => {
    const b = new WaterfallBuilder();
    for (const e of model.visible) b.take(e);
    return b.bars;
  }, [head, at, model]);
  if (bars.length === 0) return <Face title={t("waterfall.empty")} />;
  const running = at === undefined && bars.some((b) => b.to === undefined);
  const end = running ? Math.max(until, now.value) : until;
  const shown = bars.slice(-most);
  const scale = axis(shown, end);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="waterfall" tabIndex={0} aria-label={t("session.waterfall")}>
      <table>
        <caption class="only-read">{t("waterfall.table")}</caption>
        <colgroup>
          <col class="name" />
          <col />
          <col class="long" />
          <col class="how" />
        </colgroup>
        <tbody>
          {shown.map((b) => {
            const left = scale.place(b.from);
            const right = scale.place(b.to ?? end);
            return (
              <tr key={`${b.id} ${b.seq}`} class={`kind-${b.kind}`}>
                <th scope="row">
                  <button type="button" class="plain" onClick={() => open(b.seq)}>
                    <Text most={60}>{nameOf(b)}</Text>
                  </button>
                </th>
                <td class="lane">
                  <span
                    class={`bar state-${b.state}`}
                    title={clock(b.from, true)}
                    style={{ left: `${left}%`, width: `max(3px, ${right - left}%)` }}
                  />
                </td>
                <td class="long">{span((b.to ?? end) - b.from)}</td>
                <td class="how">
                  <StateChip state={b.state} small />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function nameOf(b: Bar): string {
  switch (b.kind) {
    case "job":
      return t("waterfall.job", { stage: b.name.split(" ")[0] ?? "", n: b.name.split(" ")[1] ?? "" });
    case "model":
      return `${t("waterfall.model")} ${b.name}`;
    case "people":
      return `${t("waterfall.people")}: ${b.name}`;
    case "tool":
    case "step":
      return b.name;
    case "run":
    case "queue":
    case "pause":
      return t(`waterfall.${b.kind}`);
  }
}
