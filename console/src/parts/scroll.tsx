import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** So many pixels from its end a reader counts as being there. */
const near = 40;

/** A column of what was said. It stays at its end while it grows, as long as its reader is there. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  return (
    <div
      class="talk"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
      tabIndex={0}
      role="log"
      aria-label={label}
      aria-live="off"
      onScroll={(e) => {
        const b = e.currentTarget;
        atEnd.current = b.scrollTop + b.clientHeight >= b.scrollHeight - near;
      }}
    >
      <div class="column">{children}</div>
    </div>
  );
}
