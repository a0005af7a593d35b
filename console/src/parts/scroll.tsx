import { type ComponentChildren, createContext, type JSX, type RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

/** Whether the reader of a column is at its end, and sees what comes; and how to take them there. */
export const Follows = createContext<{ at: RefObject<boolean>; go: () => void } | undefined>(undefined);

/** So many pixels from its end a reader counts as being there. */
const near = 40;

/**
 * Whether a reader is at the end of a box that has scrolled. The box tells of its own scrolling later than it did it: by then what is
 * in it may have grown, and the reader has not moved.
 */
export function stays(
  b: { scrollTop: number; clientHeight: number; scrollHeight: number },
  was: boolean,
  own: number | undefined,
): boolean {
  if (was && own !== undefined && Math.abs(b.scrollTop - own) <= 1) return true;
  return b.scrollTop + b.clientHeight >= b.scrollHeight - near;
}

/**
 * A column of what was said. It stays at its end while it grows, as long as its reader is there; and when something is put in
 * front of what they read, that stays where it is.
 */
export function Scroll(p: {
  label: string;
  /** The keys of what is to be in the column, and of what is in it by now: the rest is about to come. */
  keys: readonly string[];
  shown: readonly string[];
  /** Whether the end of the column is the end of what was said. */
  whole: boolean;
  children: ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  /** Where the column has put itself. */
  const own = useRef<number | undefined>(undefined);
  const seen = useRef<Place | undefined>(undefined);
  const hold = () => {
    const b = box.current as HTMLDivElement;
    const s = seen.current;
    if (atEnd.current) b.scrollTop = b.scrollHeight;
    else if (s?.element.isConnected) b.scrollTop += placeOf(s.element, b) - s.place;
    own.current = b.scrollTop;
    seen.current = topmost(b);
  };
  const follows = useMemo(() => {
    const go = () => {
      atEnd.current = true;
      hold();
    };
    return { at: atEnd, go };
  }, []);
  useLayoutEffect(() => {
    if (!p.whole) atEnd.current = false;
    hold();
  }, [p.shown[0]]); // something is put in front
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(hold);
    sizes.observe(column.current as HTMLDivElement);
    sizes.observe(box.current as HTMLDivElement);
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
      aria-busy={p.shown.length < p.keys.length}
      onScroll={(e) => {
        const b = e.currentTarget;
        atEnd.current = p.whole && stays(b, atEnd.current, own.current);
        seen.current = topmost(b);
      }}
    >
      <div class="column" ref={column}>
        <Follows.Provider value={follows}>{p.children}</Follows.Provider>
      </div>
    </div>
  );
}

/** An item, and where it stands in the column. Scrolling does not change that, things put in front of it do. */
type Place = { element: Element; place: number };

function placeOf(element: Element, b: HTMLElement): number {
  return element.getBoundingClientRect().top + b.scrollTop;
}

/** The first item in view. What is folded away is not. */
function topmost(b: HTMLElement): Place | undefined {
  const edge = b.getBoundingClientRect().top;
  for (const element of b.querySelectorAll(".item, .step > summary"))
    if (element.getBoundingClientRect().bottom > edge && element.checkVisibility()) return { element, place: placeOf(element, b) };
  return undefined;
}
