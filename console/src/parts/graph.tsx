import type { ViewStep } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { layers } from "../fold/layers.ts";
import { t } from "../words.ts";
import { look, Text } from "./basics.tsx";

const width = 232;
const height = 56;
const gapX = 40;
const gapY = 12;

/** How a step of a plan looks: what waits for its turn is queued, not a question. */
export function stepState(s: ViewStep): string {
  return s.status === "waiting" ? "queued" : s.status;
}

/** The steps of a plan. Those that need others stand right of them; without such needs they fill the width. A click goes to a step. */
export function PlanGraph({ steps, go }: { steps: readonly ViewStep[]; go: (step: string) => void }): JSX.Element {
  const places = layers(steps.map((s) => ({ id: s.id, needs: s.dependencies })));
  const done = steps.filter((s) => s.status === "completed").length;
  const label = t("talk.steps", { done, all: steps.length });
  if (places.every((p) => p.layer === 0))
    return (
      <ol class="graph flat" aria-label={label}>
        {steps.map((s, i) => (
          <Node key={s.id} step={s} number={i + 1} go={go} />
        ))}
      </ol>
    );
  const at = new Map(places.map((p) => [p.id, { x: p.layer * (width + gapX), y: p.slot * (height + gapY) }]));
  const w = Math.max(...places.map((p) => p.layer + 1)) * (width + gapX) - gapX;
  const h = Math.max(...places.map((p) => p.slot + 1)) * (height + gapY) - gapY;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a graph that is wider than its place is scrolled with keys
    <div class="graph" tabIndex={0}>
      <div class="plane" style={{ width: `${w}px`, height: `${h}px` }}>
        <svg width={w} height={h} viewBox={`0 0 ${w} ${h}`} aria-hidden="true">
          {steps.flatMap((s) =>
            s.dependencies.map((need) => {
              const [from, to] = [at.get(need), at.get(s.id)];
              if (!from || !to) return null;
              const [x1, y1, x2, y2] = [from.x + width, from.y + height / 2, to.x, to.y + height / 2];
              return (
                <path key={`${need} ${s.id}`} class="edge" d={`M${x1} ${y1}C${x1 + gapX / 2} ${y1} ${x2 - gapX / 2} ${y2} ${x2} ${y2}`} />
              );
            }),
          )}
        </svg>
        <ol aria-label={label}>
          {steps.map((s, i) => {
            const p = at.get(s.id) ?? { x: 0, y: 0 };
            return <Node key={s.id} step={s} number={i + 1} go={go} place={{ left: `${p.x}px`, top: `${p.y}px`, width: `${width}px` }} />;
          })}
        </ol>
      </div>
    </div>
  );
}

const signs: Partial<Record<ViewStep["status"], string>> = { completed: "✓", failed: "✗", cancelled: "–" };

function Node(p: {
  step: ViewStep;
  number: number;
  go: (step: string) => void;
  place?: { left: string; top: string; width: string };
}): JSX.Element {
  const { step } = p;
  const state = stepState(step);
  return (
    <li style={p.place}>
      <button type="button" class={`node state-${look(state)}`} onClick={() => p.go(step.id)}>
        <i aria-hidden="true">{signs[step.status] ?? p.number}</i>
        <span>
          <Text most={400}>{step.title}</Text>
        </span>
        <span class="only-read">{t(`state.${state}` as "state.failed")}</span>
      </button>
    </li>
  );
}
