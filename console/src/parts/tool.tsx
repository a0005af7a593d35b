import type { ViewItem } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { now, span } from "../app.ts";
import type { Note } from "../fold/blocks.ts";
import { t } from "../words.ts";
import { Sign, StateChip, Text } from "./basics.tsx";
import { Code } from "./code.tsx";
import { Icon } from "./icons.tsx";

/** A call of a tool: its name, its arguments in one line, how long it took. One whose outcome is unknown is loud: it may have had its effect. */
export function ToolCard(p: { item: Extract<ViewItem, { kind: "tool" }>; note: Note | undefined; live: boolean }): JSX.Element {
  const { item } = p;
  const unknown = item.status === "unknown";
  const [open, setOpen] = useState(false);
  const shown = open || unknown;
  return (
    <details class={`item tool state-${item.status}`} open={shown} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <Icon name="tool" />
        <code class="name">
          <Text>{item.name}</Text>
        </code>
        <span class="brief">
          <Text most={160}>{brief(item.arguments)}</Text>
        </span>
        <Long of={p.note} live={p.live} />
        {unknown ? <StateChip state="unknown" small /> : <Sign state={item.status} />}
      </summary>
      {unknown && <p class="loud">{t("talk.unknown")}</p>}
      {shown && (
        <>
          <h3>{t("talk.arguments")}</h3>
          <Code value={item.arguments} />
        </>
      )}
      {shown && item.text !== "" && (
        <>
          <h3>{t(item.status === "failed" ? "talk.failure" : "talk.result")}</h3>
          <Code value={item.text} />
        </>
      )}
    </details>
  );
}

/** How long something took, or takes. What goes on in the past has no length. */
export function Long({ of, live }: { of: Pick<Note, "from" | "to"> | undefined; live: boolean }): JSX.Element | null {
  if (of?.from === undefined) return null;
  const to = of.to ?? (live ? now.value : undefined);
  if (to === undefined) return null;
  const ms = Math.max(0, to - of.from);
  return <span class="long">{of.to === undefined ? span(Math.max(1000, Math.floor(ms / 1000) * 1000)) : span(ms)}</span>;
}

function brief(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  return Object.entries(value)
    .map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`)
    .join(", ")
    .replaceAll("\n", " ");
}
