import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

/** Tabs of one panel, whose id is "view". Arrow keys, Home and End choose. */
export function Tabs<V extends string>(p: {
  label: string;
  all: readonly { id: V; text: string; badge?: number }[];
  chosen: V;
  choose: (to: V) => void;
}): JSX.Element {
  useEffect(() => document.getElementById(`tab-${p.chosen}`)?.scrollIntoView({ block: "nearest", inline: "center" }), [p.chosen]);
  const keys = (e: KeyboardEvent) => {
    const at = p.all.findIndex((x) => x.id === p.chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: p.all.length - 1 }[e.key];
    const next = to === undefined ? undefined : p.all[(to + p.all.length) % p.all.length];
    if (!next) return;
    e.preventDefault();
    p.choose(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={p.label} onKeyDown={keys}>
      {p.all.map((x) => (
        <button
          key={x.id}
          type="button"
          role="tab"
          id={`tab-${x.id}`}
          aria-selected={p.chosen === x.id}
          aria-controls="view"
          tabIndex={p.chosen === x.id ? 0 : -1}
          onClick={() => p.choose(x.id)}
        >
          {x.text}
          {x.badge ? <b class="badge">{x.badge > 99 ? "99+" : x.badge}</b> : null}
        </button>
      ))}
    </div>
  );
}
