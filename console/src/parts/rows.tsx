import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

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
  /** Whether the list stays at its end while it grows, as long as its reader is there. */
  follow?: boolean;
  /** Is told which rows exist, each time that they are drawn. */
  seen?: (rows: readonly T[]) => void;
}): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState(600);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const box = ref.current as HTMLDivElement;
    const seen = new ResizeObserver(() => setSize(box.clientHeight));
    seen.observe(box);
    setSize(box.clientHeight);
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
    else if (y + p.height > box.scrollTop + box.clientHeight) box.scrollTop = y + p.height - box.clientHeight;
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
    <div
      class="rows"
      ref={ref}
      role="listbox"
      aria-label={p.label}
      tabIndex={0}
      aria-activedescendant={p.picked >= first && p.picked < last ? `row-${p.picked}` : undefined}
      onScroll={(e) => {
        const box = e.currentTarget;
        atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
        setTop(box.scrollTop);
      }}
      onKeyDown={(e) => {
        if (e.key === "Enter" && p.picked >= 0) p.open?.(p.picked);
        const to = e.ctrlKey || e.metaKey || e.altKey ? undefined : keys[e.key];
        if (to === undefined) return;
        e.preventDefault();
        e.stopPropagation();
        move(to);
      }}
    >
      <div class="extent" style={{ height: `${p.rows.length * p.height}px` }} role="presentation">
        <div style={{ transform: `translateY(${first * p.height}px)` }} role="presentation">
          {shown.map((r, i) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and names its active row
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
            <div
              key={first + i}
              id={`row-${first + i}`}
              class={first + i === p.picked ? "row picked" : "row"}
              style={{ height: `${p.height}px` }}
              role="option"
              aria-selected={first + i === p.picked}
              onClick={() => {
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
