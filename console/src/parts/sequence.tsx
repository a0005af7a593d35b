import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clock } from "../app.ts";
import type { Arrow, Side } from "../fold/arrows.ts";
import { lanes, span } from "../fold/sequence.ts";
import { plain } from "../fold/text.ts";
import type { ArrowsPatch } from "../log/protocol.ts";
import { t } from "../words.ts";
import { Text } from "./basics.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { type Listed, Rows } from "./rows.tsx";

const height = 46;
const headHeight = 44;

/** The messages of a team between its members, one below the other, as arrows between lifelines. */
export function Sequence(p: {
  arrows: ArrowsPatch;
  /** What a side is called. */
  name: (side: Side) => string;
  icon: (side: Side) => IconName;
  /** The event that is shown beside the diagram; 0: none. */
  picked: number;
  open: (seq: number) => void;
  /** Is told which of the messages are in view. */
  look: (from: number, to: number) => void;
  choose: (side: Side) => void;
  follow: boolean;
}): JSX.Element {
  const { sides, length, from, arrows } = p.arrows;
  const [view, setView] = useState({ left: 0, width: 900 });
  const [row, setRow] = useState(-1);
  const l = lanes(sides.length, view.width);
  const seen = sides
    .map((side, i) => ({ side, x: l.at(i) }))
    .filter(({ x }) => x > view.left - l.gap && x < view.left + view.width + l.gap);
  const at = (i: number): Arrow | undefined => arrows[i - from];
  const open = p.picked > 0 ? arrows.findIndex((a) => a.seq === p.picked) : -1;
  const places = new Map(sides.map((side, i) => [side, i]));
  const rows: Listed<number> = {
    length,
    slice: (a, b) => Array.from({ length: Math.max(0, Math.min(b, length) - a) }, (_, i) => a + i),
  };
  return (
    <div class="sequence">
      <Rows
        rows={rows}
        height={height}
        label={t("team.messages")}
        picked={row >= 0 ? row : open < 0 ? -1 : from + open}
        pick={setRow}
        open={(i) => {
          const a = at(i);
          if (a) p.open(a.seq);
        }}
        follow={p.follow && row < 0}
        seen={(all) => p.look(all[0] ?? 0, (all.at(-1) ?? 0) + 1)}
        width={l.width}
        sideways={(left, width) => (left !== view.left || width !== view.width) && setView({ left, width })}
        behind={seen.map(({ side, x }) => <i key={side} class="life" style={{ left: `${x}px` }} />)}
        head={{
          height: headHeight,
          content: (
            <div class="lanes" aria-hidden="true" style={{ width: `${l.width}px`, height: `${headHeight}px` }}>
              {seen.map(({ side, x }) => (
                // biome-ignore lint/a11y/noStaticElementInteractions: the tree of members is for keys
                // biome-ignore lint/a11y/useKeyWithClickEvents: the tree of members is for keys
                <div
                  key={side}
                  style={{ left: `${x}px`, maxWidth: `${l.gap - 8}px` }}
                  title={plain(p.name(side))}
                  onClick={() => p.choose(side)}
                >
                  <Icon name={p.icon(side)} />
                  <Text most={40}>{p.name(side)}</Text>
                </div>
              ))}
            </div>
          ),
        }}
        row={(i) => <Line arrow={at(i)} index={i} name={p.name} place={(side) => l.at(places.get(side) ?? 0)} view={view} />}
      />
    </div>
  );
}

function Line(p: {
  arrow: Arrow | undefined;
  index: number;
  name: (side: Side) => string;
  place: (side: Side) => number;
  view: { left: number; width: number };
}): JSX.Element {
  const a = p.arrow;
  if (!a) return <span class="waits-for-row" />;
  const s = span(p.place(a.from), p.place(a.to), p.view);
  const kind = `arrow ${s.turn}${a.dropped ? " dropped" : ""}${a.handed ? " handed" : ""}`;
  return (
    <>
      <time>{clock(a.time)}</time>
      <span class={kind} style={{ left: `${s.left}px`, width: `${s.width}px` }} aria-hidden="true" />
      <span class="said" style={{ left: `${s.text}px`, maxWidth: `${s.room}px` }} aria-hidden="true">
        {a.dropped && (
          <b>
            <Text>{t("team.dropped", { reason: a.dropped.reason })}</Text>{" "}
          </b>
        )}
        <Text most={160}>{brief(a, s.away, p.name)}</Text>
      </span>
      <span class="only-read">{sentence(a, p.name)}</span>
    </>
  );
}

/** What stands at an arrow: the text of the message; where nothing of the arrow is in view also its ends. */
function brief(a: Arrow, away: boolean, name: (side: Side) => string): string {
  const text = a.handed ? t("team.handed") : a.text.replaceAll("\n", " ");
  return away ? t("team.sentence", { from: name(a.from), to: name(a.to), text }) : text;
}

/** A message in words. */
function sentence(a: Arrow, name: (side: Side) => string): string {
  const text = plain(t("team.sentence", { from: name(a.from), to: name(a.to), text: a.text }));
  return a.dropped ? `${text} (${t("team.dropped", { reason: a.dropped.reason })})` : text;
}
