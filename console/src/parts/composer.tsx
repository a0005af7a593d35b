import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { copy, mayAct, me } from "../app.ts";
import { type Message, messageBody } from "../model/act.ts";
import { t } from "../words.ts";
import { Icon } from "./icons.tsx";

/** What is being written: it outlives a change of the room. */
export const draft = signal("");
/** How the next message is to be answered. */
export const mode = signal<"chat" | "plan">("chat");
/** Whether plans ask before they run. */
export const confirm = signal(true);

/** Where people write. Enter sends, Shift and Enter begin a new line. */
export function Composer(p: {
  send: (m: Message) => void;
  stop?: (() => void) | undefined;
  waits: boolean;
  session?: string;
}): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const message = (): Message => ({ content: draft.value.trim(), mode: mode.value, confirm: confirm.value });
  const send = () => {
    const m = message();
    if (m.content === "" || !mayAct.value) return;
    draft.value = "";
    p.send(m);
    field.current?.focus();
  };
  return (
    <form
      class="composer"
      onSubmit={(e) => {
        e.preventDefault();
        send();
      }}
    >
      <textarea
        ref={field}
        aria-label={t("composer.label")}
        placeholder={t(me.value && !mayAct.value ? "composer.viewer" : "composer.placeholder")}
        rows={Math.min(10, draft.value.split("\n").length + Math.floor(draft.value.length / 90))}
        value={draft.value}
        disabled={!mayAct.value}
        onInput={(e) => {
          draft.value = e.currentTarget.value;
        }}
        onKeyDown={(e) => {
          if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
          e.preventDefault();
          send();
        }}
      />
      <div class="bar">
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
          onClick={() => void copy(curl(message(), p.session))}
        >
          <Icon name="code" />
        </button>
        {p.stop && (
          <button type="button" class="stop" onClick={p.stop}>
            <Icon name="stop" />
            {t("composer.stop")}
          </button>
        )}
        <button type="submit" class="primary" disabled={draft.value.trim() === "" || !mayAct.value}>
          <Icon name="send" />
          {t("composer.send")}
        </button>
      </div>
    </form>
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
