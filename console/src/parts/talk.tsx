import type { Signal } from "@preact/signals";
import type { Question } from "@waggle-dev/client";
import type { ViewItem } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Side } from "../fold/arrows.ts";
import { weight } from "../log/window.ts";
import type { Conversation } from "../model/conversation.ts";
import { ended } from "../model/ended.ts";
import type { LogModel } from "../model/log.ts";
import { problem } from "../problem.ts";
import { t } from "../words.ts";
import { Face, StateChip, Text } from "./basics.tsx";
import { Code } from "./code.tsx";
import { Decided } from "./decision.tsx";
import { useGradually } from "./gradually.ts";
import { Icon } from "./icons.tsx";
import { Markdown } from "./markdown.tsx";
import { PlanCard } from "./plan.tsx";
import { type Ask, QuestionCard } from "./question.tsx";
import { Scroll } from "./scroll.tsx";
import { Reasoning, Retrying, Stopped } from "./thought.tsx";

/** The conversation of a session, or of a member of a team: what was said, called, planned and asked. */
export function Talk(p: { model: LogModel; live: boolean; asked?: readonly Ask[] }): JSX.Element {
  const { model, live } = p;
  const { talk } = model;
  const keys = talk.keys.value ?? [];
  const { earlier, later, partial, questions, active } = talk.state.value;
  const asked = (p.asked ?? questions.map((q) => askOf(q.question, model.id, q.ends))).filter((ask) => !ended.value.has(ask.id));
  const shown = useGradually(keys, (key) => weight(talk.item(key).peek()));
  const last = keys.at(-1);
  return (
    <Scroll label={t("session.talk")} keys={keys} shown={shown} whole={!later}>
      {keys.length === 0 && live && !earlier && <Face title={t("talk.empty")} />}
      {partial && <p class="works">{t("talk.partial")}</p>}
      {earlier && !partial && (
        <button type="button" class="earlier" onClick={() => model.move("earlier")}>
          {t("talk.earlier")}
        </button>
      )}
      {shown.map((key) => (
        <Item key={key} item={talk.item<ViewItem>(key)} talk={talk} live={live} />
      ))}
      {later && <Later move={(to) => model.move(to)} />}
      {live && !later && asked.map((ask) => <QuestionCard key={ask.id} ask={ask} />)}
      {active > 0 && asked.length === 0 && !later && !last?.startsWith("answer ") && !last?.startsWith("retry ") && (
        <p class="works">
          <span class="breath" />
          {t("state.running")}
        </p>
      )}
    </Scroll>
  );
}

/** What follows behind the window. */
export function Later({ move }: { move: (to: "later" | "end") => void }): JSX.Element {
  return (
    <p class="later">
      <button type="button" onClick={() => move("later")}>
        {t("talk.later")}
      </button>
      <button type="button" onClick={() => move("end")}>
        {t("talk.end")}
      </button>
    </p>
  );
}

/** A question of a session's log as a card needs it. */
function askOf(q: Question, session: string, ends: string | undefined): Ask {
  const d = q.data as Partial<Ask>;
  return {
    id: `session.${session}.${q.id}`,
    scope: q.scope === "task" ? "agent" : q.scope,
    ...(d.tool ? { tool: d.tool } : {}),
    ...(d.arguments !== undefined ? { arguments: d.arguments } : {}),
    ...(d.parameters !== undefined ? { parameters: d.parameters } : {}),
    ...(d.digest ? { digest: d.digest } : {}),
    ...(d.description ? { description: d.description } : {}),
    ...(d.summary ? { summary: d.summary } : {}),
    ...(d.message === undefined ? {} : { message: d.message, options: d.options }),
    ...(d.steps ? { steps: d.steps } : {}),
    ...(ends ? { expires_at: ends } : {}),
  };
}

function Item({ item: s, talk, live }: { item: Signal<ViewItem>; talk: Conversation; live: boolean }): JSX.Element {
  const item = s.value;
  switch (item.kind) {
    case "user": {
      const sender = talk.state.value.senders[item.id];
      return (
        <article class={sender ? "item user of-member" : "item user"}>
          <h2>{sender ? <Text>{sideName(sender)}</Text> : t("talk.you")}</h2>
          <p class="said">
            <Text most={20_000}>{item.text}</Text>
          </p>
        </article>
      );
    }
    case "answer":
      return (
        <article class={item.step === undefined ? "item answer" : "item answer of-step"} data-step={placeOf(item)}>
          {item.step === undefined && <h2 class="only-read">{t("talk.answer")}</h2>}
          {item.step !== undefined && <h2>{t("talk.step", { title: stepTitle(item.step, item.run, talk) })}</h2>}
          <Reasoning of={item} />
          {(item.text !== "" || !item.reasoning) && <Markdown text={item.text} done={item.done} />}
          {!item.done && (item.text !== "" || !item.reasoning) && <span class="caret" aria-hidden="true" />}
          {item.stop && <Stopped stop={item.stop} />}
        </article>
      );
    case "tool":
      return <ToolCard item={item} />;
    case "plan":
      return <PlanCard item={item} />;
    case "decision":
      return <Decided of={item} />;
    case "retry":
      return (
        <article class="item">
          <Retrying of={item} live={live} />
        </article>
      );
    case "notice":
      return (
        <article class="item">
          <p class="stopped">
            <Icon name="unknown" />
            <Text most={600}>{item.text || item.code}</Text>
          </p>
        </article>
      );
    case "end":
      return (
        <article class={`item end ${item.code === "RUN_CANCELLED" ? "cancelled" : "failed"}`}>
          <StateChip state={item.code === "RUN_CANCELLED" ? "cancelled" : "failed"} />
          {item.code !== "RUN_CANCELLED" && <b title={item.code}>{problem(item.code)}</b>}
          <Text most={2000}>{item.text}</Text>
        </article>
      );
  }
}

/** Names the step that something belongs to, among all runs; undefined: it belongs to none. */
const placeOf = (item: { run: string; step: string | undefined }) => (item.step === undefined ? undefined : `${item.run}/${item.step}`);

/** What a side of messages of a team is called. */
export function sideName(side: Side): string {
  return side === "people" ? t("team.side.people") : side === "board" ? t("team.side.board") : side.slice(1);
}

function stepTitle(step: string, run: string, talk: Conversation): string {
  for (const key of talk.keys.value ?? []) {
    const p = key.startsWith("plan ") ? talk.item<ViewItem>(key).value : undefined;
    if (p?.kind === "plan" && p.run === run) for (const s of p.steps) if (s.id === step) return s.title;
  }
  return talk.state.value.titles[`${run}/${step}`] ?? step;
}

/** A call of a tool. A call whose outcome is unknown is loud: it may have had its effect. */
export function ToolCard({ item }: { item: Extract<ViewItem, { kind: "tool" }> }): JSX.Element {
  const unknown = item.status === "unknown";
  const [open, setOpen] = useState(unknown);
  return (
    <details
      class={`item tool state-${item.status}`}
      data-step={placeOf(item)}
      open={open || unknown}
      onToggle={(e) => setOpen(e.currentTarget.open)}
    >
      <summary>
        <Icon name="tool" />
        <code class="name">
          <Text>{item.name}</Text>
        </code>
        <span class="brief">
          <Text most={90}>{brief(item.arguments)}</Text>
        </span>
        <StateChip state={item.status} small />
      </summary>
      {unknown && <p class="loud">{t("talk.unknown")}</p>}
      {(open || unknown) && (
        <>
          <h3>{t("talk.arguments")}</h3>
          <Code value={item.arguments} />
        </>
      )}
      {(open || unknown) && item.text !== "" && (
        <>
          <h3>{t("talk.result")}</h3>
          <Code value={item.text} />
        </>
      )}
    </details>
  );
}

function brief(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  return Object.entries(value)
    .map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`)
    .join(", ")
    .replaceAll("\n", " ");
}
