import type { JSX } from "preact";
import type { Route } from "../route.ts";
import { Text } from "./basics.tsx";
import { Link } from "./link.tsx";

/** A text, with more to say about it and a place where that is shown. */
export type Fact = string | { text: string; about?: string; to?: Route } | undefined;

/** What is known of something, in the line of its head. What is empty is left out. */
export function Facts({ all }: { all: readonly Fact[] }): JSX.Element {
  return (
    <ul class="facts">
      {all.map((one) => {
        const { text, about, to } = typeof one === "object" ? one : { text: one };
        if (!text) return null;
        return (
          <li key={text} title={about || undefined}>
            {to ? <Link to={to}>{text}</Link> : <Text most={40}>{text}</Text>}
          </li>
        );
      })}
    </ul>
  );
}
