import type { ComponentChildren, JSX } from "preact";
import { format, go, type Route } from "../route.ts";

/** A link within this page, unless the reader wants it elsewhere. */
export function Link(p: { to: Route; class?: string; label?: string; current?: boolean; children: ComponentChildren }): JSX.Element {
  return (
    <a
      href={format(p.to)}
      class={p.class}
      aria-label={p.label}
      aria-current={p.current ? "page" : undefined}
      onClick={(e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
        e.preventDefault();
        go(p.to);
      }}
    >
      {p.children}
    </a>
  );
}
