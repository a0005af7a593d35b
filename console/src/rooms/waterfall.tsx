import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { clock, now, span } from "../app.ts";
import { axis, type Bar } from "../fold/waterfall.ts";
import type { LogModel } from "../model/log.ts";
import { Face, StateChip, Text } from "../parts/basics.tsx";
import { isRefusal, problem } from "../problem.ts";
import { t } from "../words.ts";

/** The height of a bar's row in pixels. */
const height = 33;

/** What took how long, as of the event at which the log is shown. Of the rows only those in view exist. */
export function Waterfall({ model, open }: { model: LogModel; open: (seq: number) => void }): JSX.Element {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, size: 600 });
  const { bars, until } = model.bars.value ?? { bars: [], until: 0 };
  const last = bars.length;
  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    const look = () => setView({ top: b.scrollTop, size: b.clientHeight });
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(b);
    return () => sizes.disconnect();
  }, [last === 0]);
  const running = !model.inPast && bars.some((b) => b.to === undefined);
  const end = running ? Math.max(until, now.value) : until;
  const scale = useMemo(() => axis(bars, end), [bars, end]);
  if (bars.length === 0) return <Face title={t("waterfall.empty")} />;
  const from = Math.max(0, Math.floor(view.top / height) - 8);
  const to = Math.min(last, Math.ceil((view.top + view.size) / height) + 8);
  return (
    <section
      class="waterfall"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
      tabIndex={0}
      aria-label={t("session.waterfall")}
      onScroll={(e) => setView({ top: e.currentTarget.scrollTop, size: e.currentTarget.clientHeight })}
    >
      <table aria-rowcount={last} style={{ marginBlock: `${from * height}px ${(last - to) * height}px` }}>
        <caption class="only-read">{t("waterfall.table")}</caption>
        <colgroup>
          <col class="name" />
          <col />
          <col class="long" />
          <col class="how" />
        </colgroup>
        <tbody>
          {bars.slice(from, to).map((b, i) => {
            const left = scale.place(b.from);
            const right = scale.place(b.to ?? end);
            return (
              <tr key={`${b.id} ${b.seq}`} class={`kind-${b.kind}`} aria-rowindex={from + i + 1}>
                <th scope="row">
                  <button type="button" class="plain" onClick={() => open(b.seq)}>
                    <Text most={60}>{nameOf(b)}</Text>
                  </button>
                </th>
                <td class="lane">
                  <span
                    class={`bar state-${b.kind === "pause" ? "cancelled" : b.state}`}
                    title={clock(b.from, true)}
                    style={{ left: `${left}%`, width: `max(3px, ${right - left}%)` }}
                  />
                </td>
                <td class="long">{span((b.to ?? end) - b.from)}</td>
                <td class="how">
                  <How of={b} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** How something has ended, and why if it has failed. A pause that is over says nothing. */
function How({ of: b }: { of: Bar }): JSX.Element | null {
  if (b.kind === "pause" && b.state === "completed") return null;
  const waits = b.state === "waiting" && b.kind !== "people";
  const refused = b.kind === "model" && b.state === "failed" && b.reason !== undefined && isRefusal(b.reason);
  return (
    <>
      <StateChip state={waits ? (b.kind === "pause" ? "paused" : "queued") : refused ? "refused" : b.state} small />
      {b.reason && (
        <small title={b.reason}>
          <Text>{problem(b.reason)}</Text>
        </small>
      )}
    </>
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
      return b.name ? `${t(`waterfall.${b.kind}`)}: ${problem(b.name)}` : t(`waterfall.${b.kind}`);
  }
}
