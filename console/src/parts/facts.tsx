import type { JSX } from "preact";
import { Text } from "./basics.tsx";

/** What is known of something, in the line of its head. What is empty is left out. */
export function Facts({ all }: { all: readonly (string | undefined)[] }): JSX.Element {
  return (
    <ul class="facts">
      {all.map(
        (one) =>
          one && (
            <li key={one}>
              <Text most={40}>{one}</Text>
            </li>
          ),
      )}
    </ul>
  );
}
