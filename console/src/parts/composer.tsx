import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { copy } from "../app.ts";
import { type Message, messageBody } from "../model/act.ts";
import { t } from "../words.ts";
import { Icon } from "./icons.tsx";
import { Writing } from "./writing.tsx";

/** What is being written: it outlives a change of the room. */
export const draft = signal("");
/** How the next message is to be answered. */
export const mode = signal<"chat" | "plan">("chat");
/** Whether plans ask before they run. */
export const confirm = signal(true);

/** Where people write to a session. */
export function Composer(p: {
  send: (m: Message) => void;
  stop?: (() => void) | undefined;
  waits: boolean;
  session?: string;
}): JSX.Element {
  const message = (content: string): Message => ({ content, mode: mode.value, confirm: confirm.value });
  return (
    <Writing
      text={draft.value}
      placeholder={t("composer.placeholder")}
      change={(text) => {
        draft.value = text;
      }}
      send={(content) => {
        draft.value = "";
        p.send(message(content));
      }}
    >
      <fieldset class="segments">
        <legend class="only-read">{t("composer.mode")}</legend>
        {(["chat", "plan"] as const).map((m) => (
          <label key={m} class={mode.value === m ? "on" : ""}>
            <input
              type="radio"
              name="mode"
              checked={mode.value === m}
              onChange={() => {
                mode.value = m;
              }}
            />
            {t(m === "chat" ? "composer.chat" : "composer.plan")}
          </label>
        ))}
      </fieldset>
      {mode.value === "plan" && (
        <label class="check">
          <input
            type="checkbox"
            checked={confirm.value}
            onChange={(e) => {
              confirm.value = e.currentTarget.checked;
            }}
          />
          {t("composer.confirm")}
        </label>
      )}
      <span class="grow" role="status">
        {p.waits ? t("composer.waits") : ""}
      </span>
      <button
        type="button"
        class="quiet"
        title={t("composer.code")}
        aria-label={t("composer.code")}
        onClick={() => void copy(curl(message(draft.value.trim()), p.session))}
      >
        <Icon name="code" />
      </button>
      {p.stop && (
        <button type="button" class="stop" onClick={p.stop}>
          <Icon name="stop" />
          {t("composer.stop")}
        </button>
      )}
    </Writing>
  );
}

/** The request that the composer would make, for a shell. It never has a token in it. */
export function curl(m: Message, session = "$SESSION"): string {
  const quoted = JSON.stringify(messageBody({ ...m, content: m.content || "Hello" })).replaceAll("'", `'\\''`);
  const name =
    session === "$SESSION"
      ? `SESSION=$(curl -s -X POST ${location.origin}/api/v1/sessions | sed 's/.*"session_id":"\\([^"]*\\)".*/\\1/')\n`
      : "";
  return `${name}curl -X POST "${location.origin}/api/v1/sessions/${session}/messages" \\
  -H "Authorization: Bearer $WAGGLE_TOKEN" -H 'Content-Type: application/json' \\
  -d '${quoted}'
`;
}
