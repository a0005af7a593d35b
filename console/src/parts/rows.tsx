import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/** A list, which need not be here as a whole. */
export interface Listed<T> {
  readonly length: number;
  slice(from: number, to: number): readonly T[];
}

/** Rows of one height, of which only those in view exist. Arrow keys, j and k move; Enter opens. */
export function Rows<T>(p: {
  rows: Listed<T>;
  height: number;
  label: string;
  /** The index of the row that is picked, -1 = none. */
  picked: number;
  pick: (index: number) => void;
  /** Opens a row: with a click, or with Enter on the picked one. */
  open?: (index: number) => void;
  row: (row: T, index: number) => JSX.Element;
  /** Marks a row, or takes its mark away, with the key x. */
  mark?: (index: number) => void;
  /** Whether the list stays at its end while it grows, as long as its reader is there. */
  follow?: boolean;
  /** Is told which rows exist, each time that they are drawn. */
  seen?: (rows: readonly T[]) => void;
  /** Makes a tree of them: how deep a row is, and whether those below it are shown. */
  level?: (row: T) => { level: number; expanded?: boolean };
  /** Shows or hides the rows below a row of a tree, or goes to the one above it. */
  turn?: (index: number, to: "open" | "shut") => void;
  /** Stands above the rows, and moves sideways with them. */
  head?: { height: number; content: JSX.Element };
  /** Is drawn behind all rows. */
  behind?: ComponentChildren;
  /** Rows are wider than their box: they move sideways. */
  width?: number;
  /** Is told how far they have moved, and how wide their box is. */
  sideways?: (left: number, width: number) => void;
}): JSX.Element {
  const id = useId();
  const inset = p.head?.height ?? 0;
  const ref = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState(600);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const box = ref.current as HTMLDivElement;
    const look = () => {
      setSize(box.clientHeight);
      p.sideways?.(box.scrollLeft, box.clientWidth);
    };
    const seen = new ResizeObserver(look);
    seen.observe(box);
    look();
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    const box = ref.current as HTMLDivElement;
    if (p.follow && atEnd.current) box.scrollTop = box.scrollHeight;
  }, [p.rows.length, p.follow]);
  useLayoutEffect(() => {
    const box = ref.current as HTMLDivElement;
    if (p.picked < 0) return;
    const y = p.picked * p.height;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + p.height + inset > box.scrollTop + box.clientHeight) box.scrollTop = y + p.height + inset - box.clientHeight;
  }, [p.picked, p.height]);
  const last = Math.min(p.rows.length, Math.ceil((top + size) / p.height) + 5);
  const first = Math.max(0, Math.min(last, Math.floor(top / p.height) - 5));
  const shown = p.rows.slice(first, last);
  useLayoutEffect(() => p.seen?.(shown));
  const move = (to: number) => p.rows.length > 0 && p.pick(Math.min(p.rows.length - 1, Math.max(0, to)));
  const page = Math.max(1, Math.floor(size / p.height) - 1);
  const keys: Record<string, number> = {
    ArrowDown: p.picked + 1,
    j: p.picked + 1,
    ArrowUp: p.picked - 1,
    k: p.picked - 1,
    PageDown: p.picked + page,
    PageUp: p.picked - page,
    Home: 0,
    End: p.rows.length - 1,
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it is a list or a tree
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both have a name and an active row
    <div
      class="rows"
      ref={ref}
      role={p.level ? "tree" : "listbox"}
      aria-label={p.label}
      tabIndex={0}
      aria-activedescendant={p.picked >= first && p.picked < last ? `${id}-${p.picked}` : undefined}
      onScroll={(e) => {
        const box = e.currentTarget;
        atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
        setTop(box.scrollTop);
        p.sideways?.(box.scrollLeft, box.clientWidth);
      }}
      onKeyDown={(e) => {
        if (e.target !== e.currentTarget) return; // a link within a row
        if (e.key === "Enter" && p.picked >= 0) p.open?.(p.picked);
        if (p.mark && e.key === "x" && p.picked >= 0 && !(e.ctrlKey || e.metaKey || e.altKey)) {
          e.stopPropagation();
          p.mark(p.picked);
        }
        const turns = { ArrowRight: "open", ArrowLeft: "shut" }[e.key] as "open" | "shut" | undefined;
        if (p.turn && turns && p.picked >= 0) {
          e.preventDefault();
          p.turn(p.picked, turns);
        }
        const to = e.ctrlKey || e.metaKey || e.altKey ? undefined : keys[e.key];
        if (to === undefined) return;
        e.preventDefault();
        e.stopPropagation();
        move(to);
      }}
    >
      {p.head?.content}
      <div
        class="extent"
        style={{ height: `${p.rows.length * p.height}px`, width: p.width ? `${p.width}px` : undefined }}
        role="presentation"
      >
        {p.behind}
        <div style={{ transform: `translateY(${first * p.height}px)` }} role="presentation">
          {shown.map((r, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
            // biome-ignore lint/a11y/noStaticElementInteractions: it has a role of its own either way
            // biome-ignore lint/a11y/useAriaPropsSupportedByRole: rows of a tree have a level
            <div
              key={first + i}
              id={`${id}-${first + i}`}
              class={first + i === p.picked ? "row picked" : "row"}
              style={{ height: `${p.height}px` }}
              role={p.level ? "treeitem" : "option"}
              aria-level={p.level?.(r).level}
              aria-expanded={p.level?.(r).expanded}
              aria-selected={first + i === p.picked}
              onClick={(e) => {
                if ((e.target as Element).closest("a, button")) return; // it does something of its own
                p.pick(first + i);
                p.open?.(first + i);
              }}
            >
              {p.row(r, first + i)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
