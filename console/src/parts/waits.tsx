import type { JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import { mayAct } from "../app.ts";
import { drawn, layers } from "../fold/layers.ts";
import type { Wait } from "../fold/team.ts";
import { cut, plain } from "../fold/text.ts";
import { type WaitGraph as Graph, people, type WaitArrow, type Waiter, waitGraph } from "../fold/waits.ts";
import type { MemberRow } from "../log/protocol.ts";
import { t } from "../words.ts";
import { look, StateChip, Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";
import { stateOf, waitWord } from "./members.tsx";
import { narrow } from "./menu.tsx";

const size = { width: 168, height: 56, gapX: 56, gapY: 14 };
/** Below the nodes passes what goes back: from one that stands right of the one that it waits for. */
const below = 26;
/** Of a larger graph only the sentences are shown, and at most this many. */
const [mostNodes, mostSentences] = [60, 40];

/** Who in a team waits for whom, as a graph with a sentence for each arrow; nothing while nobody waits. */
export function Waits(p: { rows: readonly MemberRow[]; open: (route: string) => void }): JSX.Element | null {
  const graph = useMemo(() => waitGraph(p.rows), [p.rows]);
  const [lit, light] = useState("");
  const [shown, show] = useState(() => !narrow.peek());
  if (graph.arrows.length === 0) return null;
  const names = new Map(graph.nodes.map((n) => [n.id, n.name]));
  const more = graph.arrows.length - mostSentences;
  return (
    <details class="waiting-for" open={shown} onToggle={(e) => show(e.currentTarget.open)}>
      <summary>
        <Icon name="down" class="turn" />
        {t("waits.title")} <span class="count">{graph.arrows.length}</span>
      </summary>
      {graph.nodes.length <= mostNodes && <Picture graph={graph} lit={lit} open={p.open} />}
      <ul aria-label={t("waits.title")}>
        {graph.arrows.slice(0, mostSentences).map((a) => (
          <li key={keyOf(a)}>
            <button
              type="button"
              class={a.to === people ? "plain asks" : "plain"}
              onClick={() => p.open(a.to === people ? a.from : a.to)}
              onPointerEnter={() => light(keyOf(a))}
              onPointerLeave={() => light("")}
              onFocus={() => light(keyOf(a))}
              onBlur={() => light("")}
            >
              <Text most={300}>{sentence(a, names)}</Text>
            </button>
          </li>
        ))}
        {more > 0 && <li class="about">{t("team.waits.more", { n: more })}</li>}
      </ul>
    </details>
  );
}

const keyOf = (a: WaitArrow) => `${a.from} ${a.to}`;

/** An arrow in words. */
function sentence(a: WaitArrow, names: ReadonlyMap<string, string>): string {
  const who = plain(cut(names.get(a.from) ?? a.from, 60));
  const what = a.waits.map(subject).filter(Boolean).join(", ");
  if (a.to !== people) return t("waits.member", { who, name: plain(cut(names.get(a.to) ?? a.to, 60)), what });
  const whom = t(mayAct.value ? "waits.you" : "waits.people");
  return what === "" ? t("waits.bare", { who, name: whom }) : t("waits.member", { who, name: whom, what });
}

/** What is waited for. */
const subject = (w: Wait): string => plain(cut(w.for === "people" ? waitWord(w) : w.name || w.task, 60));

/** The graph. Readers of the page have the sentences below it, and keys go through its nodes. */
function Picture({ graph, lit, open }: { graph: Graph; lit: string; open: (route: string) => void }): JSX.Element {
  const head = useId();
  const picture = useMemo(() => {
    const needs = new Map<string, string[]>(graph.nodes.map((n) => [n.id, []]));
    for (const a of graph.arrows) needs.get(a.to)?.push(a.from);
    return drawn(layers([...needs].map(([id, of]) => ({ id, needs: of }))), size);
  }, [graph]);
  const lines = new Map(picture.lines.map((l) => [l.key, l.path]));
  const back = graph.arrows.some((a) => !lines.has(keyOf(a)));
  const height = picture.height + (back ? below : size.gapY); // lines pass below the last node, too
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a graph that is wider than its place is scrolled with keys
    <section class="graph" tabIndex={0} aria-label={t("waits.graph")}>
      <div class="plane" style={{ width: `${picture.width}px`, height: `${height}px` }}>
        <svg width={picture.width} height={height} viewBox={`0 0 ${picture.width} ${height}`} aria-hidden="true">
          <defs>
            <marker
              id={head}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path class="tip" d="M0 0.5L7.5 4L0 7.5z" />
            </marker>
          </defs>
          {graph.arrows.map((a) => (
            <path
              key={keyOf(a)}
              class={keyOf(a) === lit ? "edge lit" : "edge"}
              d={lines.get(keyOf(a)) ?? around(picture.at, a)}
              marker-end={`url(#${head})`}
            />
          ))}
        </svg>
        <ul>
          {graph.nodes.map((n) => {
            const { x, y } = picture.at.get(n.id) ?? { x: 0, y: 0 };
            return (
              <li key={n.id} style={{ left: `${x}px`, top: `${y}px`, width: `${size.width}px` }}>
                <Node of={n} open={open} />
              </li>
            );
          })}
        </ul>
      </div>
    </section>
  );
}

/** The line of an arrow that goes back, from below one node to below the other. */
function around(at: ReadonlyMap<string, { x: number; y: number }>, a: WaitArrow): string {
  const [from, to] = [at.get(a.from) ?? { x: 0, y: 0 }, at.get(a.to) ?? { x: 0, y: 0 }];
  const [fx, tx] = [from.x + size.width / 2, to.x + size.width / 2];
  const [fy, ty] = [from.y + size.height, to.y + size.height];
  const deep = Math.max(fy, ty) + below;
  return `M${fx} ${fy}C${fx} ${deep} ${tx} ${deep} ${tx} ${ty}`;
}

function Node({ of: n, open }: { of: Waiter; open: (route: string) => void }): JSX.Element {
  const state = n.id === people ? "waiting" : n.member ? stateOf(n.member.status) : "idle";
  return (
    <button
      type="button"
      class={`waiter state-${look(state)}`}
      title={plain(n.id === people ? "" : n.id)}
      onClick={() => open(n.id === people ? "" : n.id)}
    >
      <Icon name={n.member?.kind === "team" ? "team" : n.id === people ? "hand" : "person"} />
      <b>{n.id === people ? t(mayAct.value ? "waits.you.name" : "team.side.people") : <Text most={60}>{n.name}</Text>}</b>
      {n.id === people ? <small>{t("waits.asked")}</small> : <StateChip state={state} small />}
    </button>
  );
}
