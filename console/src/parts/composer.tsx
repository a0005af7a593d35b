import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Message } from "../fold/message.ts";
import { useAgents } from "../model/agents.ts";
import { t } from "../words.ts";
import { Icon } from "./icons.tsx";
import { SampleDialog } from "./sample.tsx";
import { Segments } from "./segments.tsx";
import { Writing } from "./writing.tsx";

/** What is being written: it outlives a change of the room. */
export const draft = signal("");
/** How the next message is to be answered. */
export const mode = signal<"chat" | "plan">("chat");
/** The agent of the swarm that answers chats, by its name; empty = the model. */
export const agent = signal("");
/** Whether plans ask before they run. */
export const confirm = signal(true);

/** Where people write to a session. */
export function Composer(p: {
  send: (m: Message) => void;
  stop?: (() => void) | undefined;
  waits: boolean;
  session?: string;
}): JSX.Element {
  const [sample, show] = useState(false);
  const agents = useAgents();
  const chosen = mode.value === "chat" ? agent.value : "";
  const message = (content: string): Message => ({
    content,
    mode: mode.value,
    confirm: confirm.value,
    ...(chosen ? { agent: chosen } : {}),
  });
  return (
    <>
      <Writing
        text={draft.value}
        placeholder={chosen ? t("composer.placeholder.agent", { name: chosen }) : t("composer.placeholder")}
        change={(text) => {
          draft.value = text;
        }}
        send={(content) => {
          draft.value = "";
          p.send(message(content));
        }}
      >
        <Segments
          name="mode"
          label={t("composer.mode")}
          all={["chat", "plan"]}
          chosen={mode.value}
          choose={(m) => {
            mode.value = m;
          }}
          text={(m) => t(m === "chat" ? "composer.chat" : "composer.plan")}
        />
        {mode.value === "chat" && (agents.length > 0 || chosen) && (
          <select
            aria-label={t("composer.who")}
            value={chosen}
            onChange={(e) => {
              agent.value = e.currentTarget.value;
            }}
          >
            <option value="">{t("composer.model")}</option>
            {[...new Set([...agents, ...(chosen ? [chosen] : [])])].map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
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
        <button type="button" class="quiet" title={t("composer.code")} aria-label={t("composer.code")} onClick={() => show(true)}>
          <Icon name="code" />
        </button>
        {p.stop && (
          <button type="button" class="stop" onClick={p.stop}>
            <Icon name="stop" />
            <span class="words">{t("composer.stop")}</span>
          </button>
        )}
      </Writing>
      {sample && <SampleDialog message={message(draft.value.trim() || t("play.tool.ask"))} session={p.session} close={() => show(false)} />}
    </>
  );
}
