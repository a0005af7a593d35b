import type { ComponentChildren, JSX } from "preact";
import { Icon } from "./icons.tsx";

/** A field that filters what is below it. The key / goes to it. */
export function Search(p: {
  label: string;
  /** Stands in the field in place of the label where space is scarce. */
  short?: string | undefined;
  value: string;
  change: (text: string) => void;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="filter">
      <Icon name="search" />
      <input
        type="search"
        data-search
        aria-label={p.label}
        placeholder={p.short ?? p.label}
        value={p.value}
        onInput={(e) => p.change(e.currentTarget.value)}
      />
      {p.children}
    </div>
  );
}
