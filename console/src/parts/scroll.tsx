import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** So many pixels from its end a reader counts as being there. */
const near = 40;

/**
 * A column of what was said. It stays at its end while it grows, as long as its reader is there; and when something is put in
 * front of what they read, that stays where it is.
 */
export function Scroll(p: {
  label: string;
  /** Changes when something is put in front. */
  anchor: string;
  /** Whether the end of the column is the end of what was said. */
  whole: boolean;
  children: ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const seen = useRef<{ element: Element; top: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const b = box.current as HTMLDivElement;
    const s = seen.current;
    if (!p.whole) atEnd.current = false;
    if (s?.element.isConnected && !atEnd.current) b.scrollTop += s.element.getBoundingClientRect().top - s.top;
    seen.current = topmost(b);
  }, [p.anchor]);
  useLayoutEffect(() => {
    const b = box.current as HTMLDivElement;
    const stay = () => {
      if (atEnd.current) b.scrollTop = b.scrollHeight;
    };
    stay();
    const sizes = new ResizeObserver(stay);
    sizes.observe(column.current as HTMLDivElement);
    sizes.observe(b);
    return () => sizes.disconnect();
  }, []);
  return (
    <div
      class="talk"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
      tabIndex={0}
      role="log"
      aria-label={p.label}
      aria-live="off"
      onScroll={(e) => {
        const b = e.currentTarget;
        atEnd.current = p.whole && b.scrollTop + b.clientHeight >= b.scrollHeight - near;
        seen.current = topmost(b);
      }}
    >
      <div class="column" ref={column}>
        {p.children}
      </div>
    </div>
  );
}

/** The first item in view, and where it stands. */
function topmost(b: HTMLElement): { element: Element; top: number } | undefined {
  const edge = b.getBoundingClientRect().top;
  for (const element of b.querySelectorAll(".item")) {
    const { top, bottom } = element.getBoundingClientRect();
    if (bottom > edge) return { element, top };
  }
  return undefined;
}
