import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clock } from "../app.ts";
import type { Mark } from "../log/protocol.ts";
import type { LogModel } from "../model/log.ts";
import { after } from "../route.ts";
import { t, type Word } from "../words.ts";
import { Icon } from "./icons.tsx";

/** A log of so many events is read before somebody could stop it. */
const shortLog = 2000;

/** How many events a second play at most, by the speed that is chosen. */
const speeds = [1, 4, 16] as const;
const perSecond = 8;

/** The slider over the log, which also plays: views show the log as of the event where it stands. At its right end it is live. */
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
  const player = usePlayer(model, set);
  const here = place?.seq === at ? place : undefined;
  return (
    <fieldset class="scrubber">
      <legend class="only-read">{t("session.scrubber")}</legend>
      <button
        type="button"
        class="quiet"
        title={t(player.plays ? "player.pause" : "player.play")}
        aria-label={t(player.plays ? "player.pause" : "player.play")}
        disabled={head <= first}
        onClick={player.toggle}
      >
        <Icon name={player.plays ? "pause" : "play"} />
      </button>
      <button type="button" class="quiet speed" title={t("player.speed")} onClick={player.faster}>
        <span class="only-read">{t("player.speed")}</span> {player.speed}×
      </button>
      <div class="track">
        <Marks marks={model.marks.value} first={first} head={head} />
        <input
          type="range"
          aria-label={t("session.scrubber")}
          aria-valuetext={here ? `${at}, ${clock(here.time, true)}, ${here.type}` : String(at)}
          min={first}
          max={Math.max(first, head)}
          value={at}
          style={{ "--done": `${head > first ? ((at - first) / (head - first)) * 100 : 100}%` }}
          onInput={(e) => set(Number(e.currentTarget.value), "passes")}
          onChange={(e) => set(Number(e.currentTarget.value), "stays")}
          onKeyDown={(e) => {
            const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[e.key];
            if (by === undefined) return;
            e.preventDefault();
            e.stopPropagation();
            set(at + by * (e.shiftKey ? 10 : 1), "stays");
          }}
          onPointerMove={(e) => {
            e.currentTarget.title = nearest(model.marks.value, first, head, e);
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
        {here && <time>{clock(here.time)}</time>} {at} / {head}
      </output>
    </fieldset>
  );
}

interface Player {
  plays: boolean;
  speed: number;
  toggle: () => void;
  faster: () => void;
}

/** Moves the slider event by event to the end, from the beginning if it stands at the end. */
function usePlayer(model: LogModel, set: (value: number, how: "passes" | "stays") => void): Player {
  const [plays, play] = useState(false);
  const [speed, choose] = useState<(typeof speeds)[number]>(1);
  const move = useRef(set);
  move.current = set;
  useEffect(() => {
    if (!plays) return;
    const timer = setInterval(
      () => {
        const to = model.last + 1;
        if (to < model.head) move.current(to, "passes");
        else {
          move.current(to, "stays");
          play(false);
        }
      },
      1000 / (perSecond * speed),
    );
    return () => clearInterval(timer);
  }, [plays, speed, model]);
  const toggle = () => {
    if (plays) set(model.last, "stays");
    else if (model.last >= model.head) set(model.extent.value.first, "stays");
    play(!plays);
  };
  return { plays, speed, toggle, faster: () => choose(after(speeds, speed, 1)) };
}

/** What the mark under the pointer stands for; empty if there is none near it. */
function nearest(marks: readonly Mark[], first: number, head: number, e: PointerEvent): string {
  const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
  const spread = Math.max(1, head - first);
  const far = (m: Mark) => Math.abs(box.left + ((m.seq - first) / spread) * box.width - e.clientX);
  const near = marks.filter((m) => far(m) <= 6).sort((a, b) => far(a) - far(b))[0];
  return near ? t(`mark.${near.kind}` as Word, { seq: near.seq }) : "";
}

const kinds = ["user", "takeover", "people", "failed", "unknown"];

/** What stands out in the log. One element for each kind: there may be hundreds of marks. */
function Marks({ marks, first, head }: { marks: readonly Mark[]; first: number; head: number }): JSX.Element {
  const spread = Math.max(1, head - first);
  return (
    <svg class="marks" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
      {kinds.map((kind) => (
        <path
          key={kind}
          class={kind}
          d={marks
            .filter((m) => m.kind === kind)
            .map((m) => `M${(((m.seq - first) / spread) * 1000).toFixed(1)} 0v8`)
            .join("")}
        />
      ))}
    </svg>
  );
}
