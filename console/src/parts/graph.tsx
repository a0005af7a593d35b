import type { ViewStep } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { layers } from "../fold/layers.ts";
import { cut, plain } from "../fold/text.ts";
import { t } from "../words.ts";
import { look } from "./basics.tsx";

const width = 184;
const height = 40;
const gapX = 36;
const gapY = 14;

/** How a step of a plan looks: what waits for its turn is queued, not a question. */
export function stepState(s: ViewStep): string {
  return s.status === "waiting" ? "queued" : s.status;
}

/** The steps of a plan as a graph: what a step needs stands left of it. */
export function PlanGraph({ steps }: { steps: readonly ViewStep[] }): JSX.Element {
  const places = layers(steps.map((s) => ({ id: s.id, needs: s.dependencies })));
  const at = new Map(places.map((p) => [p.id, { x: p.layer * (width + gapX), y: p.slot * (height + gapY) }]));
  const w = Math.max(...places.map((p) => p.layer + 1)) * (width + gapX) - gapX;
  const h = Math.max(...places.map((p) => p.slot + 1)) * (height + gapY) - gapY;
  const done = steps.filter((s) => s.status === "completed").length;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a graph that is wider than its place is scrolled with keys
    <div class="graph" tabIndex={0} role="img" aria-label={t("talk.steps", { done, all: steps.length })}>
      <svg width={w + 4} height={h + 4} viewBox={`-2 -2 ${w + 4} ${h + 4}`} aria-hidden="true">
        {steps.flatMap((s) =>
          s.dependencies.map((need) => {
            const from = at.get(need);
            const to = at.get(s.id);
            if (!from || !to) return null;
            const [x1, y1, x2, y2] = [from.x + width, from.y + height / 2, to.x, to.y + height / 2];
            return (
              <path key={`${need} ${s.id}`} class="edge" d={`M${x1} ${y1}C${x1 + gapX / 2} ${y1} ${x2 - gapX / 2} ${y2} ${x2} ${y2}`} />
            );
          }),
        )}
        {steps.map((s, i) => {
          const p = at.get(s.id) ?? { x: 0, y: 0 };
          return (
            <g key={s.id} class={`node state-${look(stepState(s))}`} transform={`translate(${p.x} ${p.y})`}>
              <title>{plain(s.title)}</title>
              <rect width={width} height={height} rx="8" />
              <circle cx="18" cy={height / 2} r="9" />
              <text class="number" x="18" y={height / 2}>
                {s.status === "completed" ? "✓" : s.status === "failed" ? "✗" : s.status === "cancelled" ? "–" : i + 1}
              </text>
              <text class="title" x="34" y={height / 2}>
                {cut(plain(s.title), 18)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
