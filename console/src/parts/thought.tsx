import type { Retry, Text as Said, Thought } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { now, span } from "../app.ts";
import type { Note } from "../fold/blocks.ts";
import { plain } from "../fold/text.ts";
import { problem } from "../problem.ts";
import { t } from "../words.ts";
import { Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";
import { Markdown } from "./markdown.tsx";

/** What a model thought before and between its text: in one line, until someone wants to read it. */
export function Reasoning(p: { of: Said & { done: boolean; thought?: Thought } }): JSX.Element | null {
  const { reasoning, text, done, thought } = p.of;
  const [open, setOpen] = useState(false);
  if (!reasoning) return null;
  const thinks = !done && text === "";
  const long = thought ? thought.to - thought.from : 0;
  return (
    <details class={thinks ? "thought now" : "thought"} open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <Icon name="bulb" />
        {thinks ? t("talk.thinks") : long >= 500 ? t("talk.thought", { time: span(long) }) : t("talk.reasoning")}
        <Icon name="down" class="turn" />
      </summary>
      {open && <Markdown text={reasoning} done={!thinks} />}
    </details>
  );
}

/** Why a text is not complete. */
export function Stopped({ stop }: { stop: NonNullable<Said["stop"]> }): JSX.Element {
  return (
    <p class="stopped">
      <Icon name="slash" />
      <span>
        {t(`talk.stop.${stop.reason}`)}
        {stop.detail && (
          <>
            {" "}
            (<Text>{stop.detail}</Text>)
          </>
        )}
      </span>
    </p>
  );
}

/** That a model answered only after some requests had failed. */
export function Retried({ of }: { of: Note | undefined }): JSX.Element | null {
  if (!of?.failed) return null;
  return (
    <p class="stopped">
      <Icon name="again" />
      <span>{t(of.failed === 1 ? "talk.retried.one" : "talk.retried", { n: of.failed, problem: problem(of.code ?? "") })}</span>
    </p>
  );
}

/** A model that is asked again: why, which one, and when. In the past no time is left. */
export function Retrying({ of, live }: { of: Retry; live: boolean }): JSX.Element {
  const left = live ? Math.max(0, Math.ceil((of.at + of.pause - now.value) / 1000)) : Math.ceil(of.pause / 1000);
  const word = of.model ? (left > 0 ? "talk.next" : "talk.next.now") : left > 0 ? "talk.retry" : "talk.retry.now";
  return (
    <p class="retry" title={plain(of.text)}>
      <span class="breath" />
      <Text most={300}>{t(word, { problem: problem(of.code), n: of.try + 1, all: of.tries, time: left, model: of.model ?? "" })}</Text>
    </p>
  );
}
