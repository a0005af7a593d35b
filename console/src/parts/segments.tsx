import type { JSX } from "preact";

/** A choice of few, of which one holds. */
export function Segments<T extends string>(p: {
  name: string;
  label: string;
  all: readonly T[];
  chosen: T;
  choose: (one: T) => void;
  text: (one: T) => string;
}): JSX.Element {
  return (
    <fieldset class="segments">
      <legend class="only-read">{p.label}</legend>
      {p.all.map((one) => (
        <label key={one} class={p.chosen === one ? "on" : ""}>
          <input type="radio" name={p.name} checked={p.chosen === one} onChange={() => p.choose(one)} />
          {p.text(one)}
        </label>
      ))}
    </fieldset>
  );
}
