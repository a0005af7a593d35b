import type { ComponentChildren, JSX } from "preact";
import { t, type Word } from "../words.ts";

/** A table with a heading. On narrow pages its rows become cards. */
export function Table(p: {
  title: string;
  quiet?: boolean;
  look?: string;
  columns: readonly Word[];
  children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <h2 class={p.quiet ? "only-read" : undefined}>{p.title}</h2>
      <table class={`list ${p.look ?? ""}`}>
        <thead>
          <tr>
            {p.columns.map((c) => (
              <th key={c} scope="col">
                {t(c)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{p.children}</tbody>
      </table>
    </>
  );
}
