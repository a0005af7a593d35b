import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { clock, now, span } from "../app.ts";
import { axis, type Bar } from "../fold/bars.ts";
import { type Branch, moved, nameOf, ticks, trace, unfolded, type Window, whole, within, zoomed } from "../fold/trace.ts";
import type { LogModel } from "../model/log.ts";
import { BarDetail, Glyph, reasonOf, titleOf } from "../parts/bar.tsx";
import { Face, Text } from "../parts/basics.tsx";
import { Icon } from "../parts/icons.tsx";
import { narrow } from "../parts/menu.tsx";
import { Rows } from "../parts/rows.tsx";
import { t } from "../words.ts";

/** The height of a row in pixels. */
const height = 32;

/** So many lines the scale has at most, on a phone and elsewhere. */
const [fewTicks, mostTicks] = [3, 8];

/** What took how long, and for what: a tree of bars, as of the event at which the log is shown. Times in which nothing happens are folded. */
export function Trace(p: {
  model: LogModel;
  open: (seq: number) => void;
  /** The event that began the job whose bar is picked at first. */
  bar?: number | undefined;
  /** More to say about a bar. */
  about?: ((b: Bar) => string) | undefined;
}): JSX.Element {
  const { model, open } = p;
  const { bars, until } = model.bars.value ?? { bars: [], until: 0 };
  const [shut, setShut] = useState<ReadonlySet<string>>(new Set());
  const [picked, pick] = useState<string | undefined>(undefined);
  const [view, look] = useState<Window>(whole);
  const running = !model.inPast && bars.some((b) => b.to === undefined);
  const end = running ? Math.max(until, now.value) : until;
  const scale = useMemo(() => axis(bars, end), [bars, end]);
  const tree = useMemo(() => trace(bars), [bars]);
  const rows = useMemo(() => unfolded(tree, shut), [tree, shut]);
  if (bars.length === 0) return <Face title={t("trace.empty")} />;
  const runs = tree.filter((r) => r.depth === 0 && r.below > 0).map((r) => nameOf(r.bar));
  const begin = Math.min(...bars.slice(0, 50).map((b) => b.from));
  const lines = ticks(scale.place, begin, end, view, narrow.value ? fewTicks : mostTicks);
  const fold = (b: Bar, to: boolean) => {
    const next = new Set(shut);
    if (to) next.add(nameOf(b));
    else next.delete(nameOf(b));
    setShut(next);
  };
  const at = rows.findIndex((r) => (picked === undefined ? r.bar.seq === p.bar && r.bar.kind === "job" : nameOf(r.bar) === picked));
  const chosen = rows[at]?.bar;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the tree within it
    <div
      class={chosen ? "trace with-detail" : "trace"}
      onKeyDown={(e) => {
        const to = keyed(view, e);
        if (!to) return;
        e.preventDefault();
        e.stopPropagation();
        look(to);
      }}
    >
      <Before model={model} first={bars[0] as Bar} />
      <Scale lines={lines} view={view} look={look} runs={runs} fold={(all) => setShut(new Set(all ? runs : []))} shut={shut.size > 0} />
      <Rows
        rows={rows}
        height={height}
        label={t("trace.table")}
        picked={at}
        pick={(i) => pick(rows[i] ? nameOf(rows[i].bar) : "")}
        level={(r) => ({ level: r.depth + 1, ...(r.below > 0 ? { expanded: !shut.has(nameOf(r.bar)) } : {}) })}
        turn={(i, to) => rows[i] && rows[i].below > 0 && fold(rows[i].bar, to === "shut")}
        row={(r) => (
          <Row
            of={r}
            why={[reasonOf(r.bar), p.about?.(r.bar)].filter(Boolean).join(" · ")}
            shut={shut.has(nameOf(r.bar))}
            fold={(to) => fold(r.bar, to)}
            place={(time) => within(view, scale.place(time))}
            end={end}
            lines={lines}
          />
        )}
      />
      {chosen && <BarDetail model={model} bar={chosen} end={end} open={open} close={() => pick("")} />}
    </div>
  );
}

/** Says that the log has more before the bars that are shown, and has it read. */
function Before({ model, first }: { model: LogModel; first: Bar }): JSX.Element | null {
  const { first: oldest, head, read, reading } = model.extent.value;
  if (reading || read > head - oldest || first.seq <= oldest + 1) return null;
  return (
    <p class="before">
      <span>{t("trace.before", { seq: first.seq, head })}</span>
      <button type="button" class="quiet" onClick={() => model.whole(true)}>
        {t("trace.whole")}
      </button>
    </p>
  );
}

/** The window after a key: + and - zoom, 0 shows all, Shift with an arrow moves. */
function keyed(w: Window, e: KeyboardEvent): Window | undefined {
  if (e.ctrlKey || e.metaKey || e.altKey) return undefined;
  if (e.key === "+" || e.key === "=") return zoomed(w, 50, 0.5);
  if (e.key === "-") return zoomed(w, 50, 2);
  if (e.key === "0") return whole;
  if (e.shiftKey && e.key === "ArrowLeft") return moved(w, -0.25);
  if (e.shiftKey && e.key === "ArrowRight") return moved(w, 0.25);
  return undefined;
}

/** The scale of the axis. Dragging over it zooms into a part, a double click shows all again. */
function Scale({
  lines,
  view,
  look,
  runs,
  shut,
  fold,
}: {
  lines: ReturnType<typeof ticks>;
  view: Window;
  look: (w: Window) => void;
  runs: readonly string[];
  shut: boolean;
  fold: (all: boolean) => void;
}): JSX.Element {
  const lane = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | undefined>(undefined);
  const place = (e: PointerEvent | WheelEvent): number => {
    const box = (lane.current as HTMLElement).getBoundingClientRect();
    return Math.min(100, Math.max(0, ((e.clientX - box.left) / box.width) * 100));
  };
  const drop = () => {
    setDrag(undefined);
    if (!drag) return;
    const [a, b] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    if (b - a < 1) return;
    const size = view.to - view.from;
    look({ from: view.from + (size * a) / 100, to: view.from + (size * Math.max(b, a + 0.05)) / 100 });
  };
  const zoomedIn = view.to - view.from < 100;
  return (
    <div class="scale" role="presentation">
      <div class="zoom">
        <button type="button" class="quiet" aria-label={t("trace.in")} title={t("trace.in")} onClick={() => look(zoomed(view, 50, 0.5))}>
          <Icon name="plus" />
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={t("trace.out")}
          title={t("trace.out")}
          disabled={!zoomedIn}
          onClick={() => look(zoomed(view, 50, 2))}
        >
          <Icon name="minus" />
        </button>
        {zoomedIn && (
          <button type="button" class="quiet" onClick={() => look(whole)}>
            {t("trace.all")}
          </button>
        )}
        {runs.length > 1 && (
          <button type="button" class="quiet" onClick={() => fold(!shut)}>
            {t(shut ? "trace.unfold" : "trace.fold")}
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the buttons and keys do the same */}
      <div
        ref={lane}
        class="ticks"
        role="presentation"
        title={t("trace.drag")}
        onPointerDown={(e) => {
          e.currentTarget.setPointerCapture(e.pointerId);
          setDrag({ from: place(e), to: place(e) });
        }}
        onPointerMove={(e) => drag && setDrag({ ...drag, to: place(e) })}
        onPointerUp={drop}
        onPointerCancel={() => setDrag(undefined)}
        onDblClick={() => look(whole)}
        onWheel={(e) => {
          if (!e.ctrlKey) return;
          e.preventDefault();
          look(zoomed(view, place(e), e.deltaY < 0 ? 0.8 : 1.25));
        }}
      >
        {lines.map((l) => (
          <span key={l.ms} style={{ left: `${l.at}%` }}>
            {l.ms === 0 ? "0" : span(l.ms)}
          </span>
        ))}
        {drag && <i style={{ left: `${Math.min(drag.from, drag.to)}%`, width: `${Math.abs(drag.to - drag.from)}%` }} />}
      </div>
    </div>
  );
}

interface RowProps {
  of: Branch;
  /** Why it ended as it did; empty: that needs no word. */
  why: string;
  shut: boolean;
  fold: (to: boolean) => void;
  place: (time: number) => number;
  end: number;
  lines: ReturnType<typeof ticks>;
}

function Row({ of, why, shut, fold, place, end, lines }: RowProps): JSX.Element {
  const b = of.bar;
  const [left, right] = [Math.max(0, place(b.from)), Math.min(100, place(b.to ?? end))];
  return (
    <div class={`branch kind-${b.kind}`} role="presentation">
      <span class="name" style={{ paddingInlineStart: `${of.depth * 16}px` }}>
        {of.below > 0 ? (
          <button
            type="button"
            class="quiet turn"
            tabIndex={-1}
            aria-label={t(shut ? "trace.open" : "trace.shut")}
            onClick={() => fold(!shut)}
          >
            <Icon name={shut ? "right" : "down"} />
          </button>
        ) : (
          <i />
        )}
        <Glyph of={b} />
        <span class="what">
          <Text most={200}>{titleOf(b)}</Text>
        </span>
        {shut && <small>{t("trace.below", { n: of.below })}</small>}
        {why && (
          <small title={b.reason}>
            <Text>{why}</Text>
          </small>
        )}
      </span>
      <span class="lane">
        {lines.map((l) => (
          <i key={l.ms} style={{ left: `${l.at}%` }} />
        ))}
        {right >= 0 && left <= 100 && (
          <span
            class={`bar state-${b.kind === "pause" ? "cancelled" : b.state}`}
            title={clock(b.from, true)}
            style={{ left: `${left}%`, width: `max(3px, ${right - left}%)` }}
          />
        )}
      </span>
      <span class="long">{span((b.to ?? end) - b.from)}</span>
    </div>
  );
}
