import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Colours } from "../fold/colours.ts";
import { pretty } from "../fold/text.ts";
import { t } from "../words.ts";

const first = 8 << 10;

/** A value as JSON, or a text as it is. What is long is cut, and says so. */
export function Code({ value }: { value: unknown }): JSX.Element {
  const [all, setAll] = useState(false);
  const text = pretty(value);
  const shown = all ? text : text.slice(0, first);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <pre class="code" tabIndex={0}>
        <code>{!all && typeof value === "object" ? coloured(shown) : shown}</code>
      </pre>
      {!all && text.length > first && (
        <button type="button" onClick={() => setAll(true)}>
          {t("talk.more")}
        </button>
      )}
    </>
  );
}

/** JSON with its colours. */
function coloured(json: string): (string | JSX.Element)[] {
  const colours = new Colours("json");
  return json.split("\n").flatMap((line, i) => {
    const pieces = colours.line(line).map(({ kind, text }, n) =>
      kind === "" ? (
        text
      ) : (
        <span key={n} class={kind}>
          {text}
        </span>
      ),
    );
    return i === 0 ? pieces : ["\n", ...pieces];
  });
}
