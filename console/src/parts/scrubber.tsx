import type { JSX } from "preact";
import { clock } from "../app.ts";
import type { Mark } from "../log/protocol.ts";
import type { LogModel } from "../model/log.ts";
import { t } from "../words.ts";
import { Icon } from "./icons.tsx";

/** A log of so many events is read before somebody could stop it. */
const shortLog = 2000;

/** The slider over the log: views show it as of the event where it stands. At its right end it is live. */
export function Scrubber({
  model,
  seek,
}: {
  model: LogModel;
  seek: (at: number | undefined, how: "passes" | "stays") => void;
}): JSX.Element {
  const { first, head, read, reading } = model.extent.value;
  const at = model.last;
  const place = model.place.value;
  const set = (value: number, how: "passes" | "stays") => seek(value >= head ? undefined : Math.max(first, value), how);
  return (
    <div class="scrubber">
      <div class="track">
        <Marks marks={model.marks.value} first={first} head={head} />
        <input
          type="range"
          aria-label={t("session.scrubber")}
          aria-valuetext={place?.seq === at ? `${at}, ${clock(place.time, true)}, ${place.type}` : String(at)}
          min={first}
          max={Math.max(first, head)}
          value={at}
          onInput={(e) => set(Number(e.currentTarget.value), "passes")}
          onChange={(e) => set(Number(e.currentTarget.value), "stays")}
          onKeyDown={(e) => {
            const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[e.key];
            if (by === undefined) return;
            e.preventDefault();
            set(at + by * (e.shiftKey ? 10 : 1), "stays");
          }}
        />
      </div>
      {reading && head - first > shortLog && (
        <button type="button" class="quiet reading" title={t("log.stop")} onClick={() => model.whole(false)}>
          <Icon name="cross" />
          {t("log.read", { percent: Math.floor((read / Math.max(1, head - first + 1)) * 100) })}
          <span class="only-read">{t("log.stop")}</span>
        </button>
      )}
      <output>
        {at} / {head}
      </output>
    </div>
  );
}

const kinds = ["user", "people", "failed", "unknown"];

/** What stands out in the log. One element for each kind: there may be hundreds of marks. */
function Marks({ marks, first, head }: { marks: readonly Mark[]; first: number; head: number }): JSX.Element {
  const spread = Math.max(1, head - first);
  return (
    <svg class="marks" viewBox="0 0 1000 5" preserveAspectRatio="none" aria-hidden="true">
      {kinds.map((kind) => (
        <path
          key={kind}
          class={kind}
          d={marks
            .filter((m) => m.kind === kind)
            .map((m) => `M${(((m.seq - first) / spread) * 1000).toFixed(1)} 0v5`)
            .join("")}
        />
      ))}
    </svg>
  );
}
