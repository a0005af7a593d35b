import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { clock } from "../app.ts";
import type { LogModel } from "../model/log.ts";
import { t } from "../words.ts";

/** The slider over the log: views show it as of the event where it stands. At its right end it is live. */
export function Scrubber({ model, seek }: { model: LogModel<unknown>; seek: (at: number | undefined) => void }): JSX.Element {
  const head = model.head.value;
  const first = model.first.value;
  const at = Math.min(model.at.value ?? head, head);
  const event = model.events[model.count(at) - 1];
  const marks = useMemo(() => marksOf(model), [head, model]);
  const spread = Math.max(1, head - first);
  const set = (value: number) => seek(value >= head ? undefined : Math.max(first, value));
  return (
    <div class="scrubber">
      <div class="track">
        {marks.map((m) => (
          <i key={m.seq} class={m.kind} style={{ left: `${((m.seq - first) / spread) * 100}%` }} />
        ))}
        <input
          type="range"
          aria-label={t("session.scrubber")}
          aria-valuetext={event ? `${at}, ${clock(event.time, true)}, ${event.type}` : String(at)}
          min={first}
          max={Math.max(first, head)}
          value={at}
          onInput={(e) => set(Number(e.currentTarget.value))}
          onKeyDown={(e) => {
            const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[e.key];
            if (by === undefined) return;
            e.preventDefault();
            set(at + by * (e.shiftKey ? 10 : 1));
          }}
        />
      </div>
      <output>
        {at} / {head}
      </output>
    </div>
  );
}

/** What stands out in a log: questions, failures, and calls whose outcome is unknown. The newest 400 of them. */
function marksOf(model: LogModel<unknown>): { seq: number; kind: string }[] {
  const found: { seq: number; kind: string }[] = [];
  for (let i = model.events.length - 1; i >= 0 && found.length < 400; i--) {
    const e = model.events[i] as (typeof model.events)[number];
    const kind = kinds[e.type];
    if (kind) found.push({ seq: e.sequence, kind });
  }
  return found;
}

const kinds: Record<string, string> = {
  "input.requested": "people",
  "tool.unknown": "unknown",
  "tool.failed": "failed",
  "run.failed": "failed",
  "step.failed": "failed",
  "message.received": "user",
};
