import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { mayAct, me } from "../app.ts";
import { t } from "../words.ts";
import { ViewOnly } from "./basics.tsx";
import { Icon } from "./icons.tsx";

/** A field for a message with a bar of controls below. Enter sends, Shift and Enter begin a new line. */
export function Writing(p: {
  text: string;
  placeholder: string;
  change: (text: string) => void;
  /** Gets the text without the spaces around it; never an empty one. */
  send: (text: string) => void;
  children: ComponentChildren;
}): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const content = p.text.trim();
  const send = () => {
    if (content === "" || !mayAct.value) return;
    p.send(content);
    field.current?.focus();
  };
  if (me.value && !mayAct.value) return <ViewOnly why="composer.viewer" />;
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
        placeholder={p.placeholder}
        rows={Math.min(10, p.text.split("\n").length + Math.floor(p.text.length / 90))}
        value={p.text}
        disabled={!mayAct.value}
        onInput={(e) => p.change(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
          e.preventDefault();
          send();
        }}
      />
      <div class="bar">
        {p.children}
        <button type="submit" class="primary" disabled={content === "" || !mayAct.value}>
          <Icon name="send" />
          <span class="words">{t("composer.send")}</span>
        </button>
      </div>
    </form>
  );
}
