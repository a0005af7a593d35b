import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { lineThrough, topOf } from "../fold/charts.ts";

const width = 300;
const height = 96;

/** A series of a chart: bars from the bottom, or a line. */
export interface Series {
  readonly name: string;
  readonly look: "main" | "second" | "bad";
  readonly values: readonly (number | undefined)[];
}

/**
 * A small chart of a few series over the same steps of time, drawn as bars or as lines. The table that says the same stands elsewhere:
 * for readers it is one image with a name.
 */
export function Chart(p: {
  title: string;
  /** The figure of all steps together, or of the one that is pointed at. */
  figure: string;
  label: string;
  bars?: boolean;
  series: readonly Series[];
  tick: (v: number) => string;
  from: string;
  to: string;
  over: number | undefined;
  point: (i: number | undefined) => void;
  /** What is said in place of a chart without a value. */
  none: string;
  children?: JSX.Element;
}): JSX.Element {
  const id = useId();
  const n = Math.max(1, ...p.series.map((s) => s.values.length));
  const known = p.series.flatMap((s) => s.values.filter((v) => v !== undefined));
  const top = topOf(Math.max(0, ...known));
  const step = width / n;
  const y = (v: number) => height - (v / top) * (height - 2);
  const empty = known.length === 0;
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption>
        <h3 id={id}>{p.title}</h3>
        {p.children}
        <output>{p.figure}</output>
      </figcaption>
      <div class="plot">
        {!empty && (
          <span class="tick" aria-hidden="true">
            {p.tick(top)}
          </span>
        )}
        {empty && <p class="none">{p.none}</p>}
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={p.label}
          onPointerLeave={() => p.point(undefined)}
        >
          {!empty && <path class="grid" d={`M0 1H${width}M0 ${height / 2}H${width}`} />}
          {p.series.map((s) =>
            p.bars ? (
              <path key={s.name} class={`bar ${s.look}`} d={bars(s.values, step, y)} />
            ) : (
              <path key={s.name} class={`edge ${s.look}`} d={lines(s.values, step, y)} />
            ),
          )}
          {p.over !== undefined && <rect class="over" x={p.over * step} y="0" width={step} height={height} />}
          {Array.from({ length: n }, (_, i) => (
            <rect key={i} class="at" x={i * step} y="0" width={step} height={height} onPointerEnter={() => p.point(i)} />
          ))}
        </svg>
      </div>
      <p class="axis" aria-hidden="true">
        <span>{p.from}</span>
        {p.series.length > 1 && (
          <span class="keys">
            {p.series.map((s) => (
              <span key={s.name} class={s.look}>
                {s.name}
              </span>
            ))}
          </span>
        )}
        <span>{p.to}</span>
      </p>
    </figure>
  );
}

/** The part of a step that its bar takes. */
const full = 0.72;

function bars(values: readonly (number | undefined)[], step: number, y: (v: number) => number): string {
  return values
    .map((v, i) =>
      v ? `M${(i * step + (step * (1 - full)) / 2).toFixed(2)} ${height}V${y(v).toFixed(2)}h${(step * full).toFixed(2)}V${height}Z` : "",
    )
    .join("");
}

/** A line, in which a value without neighbours is a short stroke. */
function lines(values: readonly (number | undefined)[], step: number, y: (v: number) => number): string {
  const at = (i: number, v: number) => [(i + 0.5) * step, y(v)] as const;
  const alone = values.map((v, i) => {
    if (v === undefined || values[i - 1] !== undefined || values[i + 1] !== undefined) return "";
    const [x, h] = at(i, v);
    return `M${(x - step * 0.3).toFixed(2)} ${h.toFixed(2)}h${(step * 0.6).toFixed(2)}`;
  });
  return lineThrough(values, at) + alone.join("");
}
