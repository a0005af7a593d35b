import type { ViewStep } from "@waggle-dev/client/view";
import type { JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Note, StepNote } from "../fold/blocks.ts";
import { drawn, layers } from "../fold/layers.ts";
import { plain } from "../fold/text.ts";
import { t } from "../words.ts";
import { look, Text } from "./basics.tsx";
import type { Editable } from "./steps.ts";
import { Long } from "./tool.tsx";

const height = 56;
const gaps = { gapX: 28, gapY: 12 };
/** A node is as wide as its place allows, within these. */
const [narrowest, widest] = [160, 320];

/** How a step of a plan looks: what waits for its turn is queued, not a question. */
export function stepState(s: ViewStep): string {
  return s.status === "waiting" ? "queued" : s.status;
}

interface Steps {
  steps: readonly ViewStep[];
  /** When they began and ended. */
  note: (step: string) => StepNote | undefined;
  live: boolean;
  /** Goes to a step. */
  go: (step: string) => void;
}

/** The steps of a plan. Those that need others stand right of them; without such needs they fill the width. A click goes to a step. */
export function PlanGraph(p: Steps): JSX.Element {
  const { steps } = p;
  const box = useRef<HTMLDivElement>(null);
  const room = useWidth(box);
  const graph = useMemo(() => layers(steps.map((s) => ({ id: s.id, needs: s.dependencies }))), [steps]);
  const done = steps.filter((s) => s.status === "completed").length;
  const label = t("talk.steps", { done, all: steps.length });
  const columns = Math.max(1, ...graph.places.map((s) => s.layer + 1));
  const width = Math.min(widest, Math.max(narrowest, Math.floor((room + gaps.gapX) / columns) - gaps.gapX));
  const picture = useMemo(() => drawn(graph, { width, height, ...gaps }), [graph, width]);
  if (columns === 1)
    return (
      <ol class="graph flat" aria-label={label}>
        {steps.map((s, i) => (
          <Node key={s.id} of={p} step={s} number={i + 1} />
        ))}
      </ol>
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a graph that is wider than its place is scrolled with keys
    <div class="graph" ref={box} tabIndex={0} onPointerDown={pan}>
      <div class="plane" style={{ width: `${picture.width}px`, height: `${picture.height}px` }}>
        <Lines of={picture} />
        <ol aria-label={label}>
          {steps.map((s, i) => {
            const { x, y } = picture.at.get(s.id) ?? { x: 0, y: 0 };
            return <Node key={s.id} of={p} step={s} number={i + 1} place={{ left: `${x}px`, top: `${y}px`, width: `${width}px` }} />;
          })}
        </ol>
      </div>
    </div>
  );
}

function Lines({ of }: { of: ReturnType<typeof drawn> }): JSX.Element {
  return (
    <svg width={of.width} height={of.height} viewBox={`0 0 ${of.width} ${of.height}`} aria-hidden="true">
      {of.lines.map((l) => (
        <path key={l.key} class="edge" d={l.path} />
      ))}
    </svg>
  );
}

/** The width that there is for what is in a box. */
function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    const read = () => set(b.clientWidth - 4);
    read();
    const sizes = new ResizeObserver(read);
    sizes.observe(b);
    return () => sizes.disconnect();
  }, [box.current === null]);
  return width;
}

/** Moves what is wider than its box with the pointer, from where no node is. */
function pan(e: PointerEvent & { currentTarget: HTMLElement }): void {
  const b = e.currentTarget;
  if (e.button !== 0 || e.pointerType === "touch" || (e.target as Element).closest("button") || b.scrollWidth <= b.clientWidth) return;
  b.setPointerCapture(e.pointerId);
  const from = { x: e.clientX + b.scrollLeft, y: e.clientY + b.scrollTop };
  const end = new AbortController();
  b.addEventListener("pointermove", (m: PointerEvent) => b.scrollTo(from.x - m.clientX, from.y - m.clientY), { signal: end.signal });
  for (const what of ["pointerup", "pointercancel"]) b.addEventListener(what, () => end.abort(), { signal: end.signal });
}

const signs: Partial<Record<ViewStep["status"], string>> = { completed: "✓", failed: "✗", cancelled: "–" };

function Node(p: { of: Steps; step: ViewStep; number: number; place?: { left: string; top: string; width: string } }): JSX.Element {
  const { step, of } = p;
  const state = stepState(step);
  const note: Note | undefined = step.status === "waiting" ? undefined : of.note(step.id);
  return (
    <li style={p.place}>
      <button type="button" class={`node state-${look(state)}`} title={plain(step.title)} onClick={() => of.go(step.id)}>
        <i aria-hidden="true">{signs[step.status] ?? p.number}</i>
        <span class="title">
          <Text most={400}>{step.title}</Text>
        </span>
        <Long of={note} live={of.live} />
        <span class="only-read">{t(`state.${state}` as "state.failed")}</span>
      </button>
    </li>
  );
}

const small = { width: 26, height: 26, gapX: 26, gapY: 10 };

/** What needs what in a plan that is being edited, by the numbers of its steps. */
export function PlanMap({ steps }: { steps: readonly Editable[] }): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  const ids = steps.map((s) => s.step.id).join(" ");
  const picture = useMemo(() => {
    const graph = layers(steps.map(({ step }) => ({ id: step.id, needs: step.dependencies ?? [] })));
    return graph.ways.length === 0 ? undefined : drawn(graph, small);
  }, [ids]);
  useEffect(() => {
    box.current?.scrollTo(0, 0);
  }, [ids]);
  if (!picture) return null;
  return (
    <div class="map" ref={box} aria-hidden="true">
      <div class="plane" style={{ width: `${picture.width}px`, height: `${picture.height}px` }}>
        <Lines of={picture} />
        {steps.map(({ step, dropped }, i) => {
          const { x, y } = picture.at.get(step.id) ?? { x: 0, y: 0 };
          return (
            <i key={step.id} class={dropped ? "dropped" : ""} title={plain(step.title)} style={{ left: `${x}px`, top: `${y}px` }}>
              {i + 1}
            </i>
          );
        })}
      </div>
    </div>
  );
}
