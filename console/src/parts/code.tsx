import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { pretty } from "../fold/text.ts";
import { t } from "../words.ts";

const first = 8 << 10;

/** A value as JSON, or a text as it is. What is long is cut, and says so. */
export function Code({ value }: { value: unknown }): JSX.Element {
  const [all, setAll] = useState(false);
  const text = pretty(value);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <pre class="code" tabIndex={0}>
        <code>{all ? text : text.slice(0, first)}</code>
      </pre>
      {!all && text.length > first && (
        <button type="button" onClick={() => setAll(true)}>
          {t("talk.more")}
        </button>
      )}
    </>
  );
}
