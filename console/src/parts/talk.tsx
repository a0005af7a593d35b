import type { Question } from "@waggle-dev/client";
import type { View, ViewItem } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { t } from "../words.ts";
import { Face, StateChip, Text } from "./basics.tsx";
import { Code } from "./code.tsx";
import { PlanGraph } from "./graph.tsx";
import { Icon } from "./icons.tsx";
import { Markdown } from "./markdown.tsx";
import { type Ask, QuestionCard } from "./question.tsx";
import { Scroll } from "./scroll.tsx";

/** So many items are shown at first, the newest: older ones come on request. */
const atOnce = 80;

/** The conversation of a session: what was said, called, planned and asked. */
export function Talk(p: { view: View; session: string; live: boolean; ends: (question: string) => string | undefined }): JSX.Element {
  const { items, questions } = p.view;
  const [more, setMore] = useState(0);
  const hidden = Math.max(0, items.length - atOnce - more);
  const last = items.at(-1);
  return (
    <Scroll label={t("session.talk")}>
      {items.length === 0 && p.live && <Face title={t("talk.empty")} />}
      {hidden > 0 && (
        <button type="button" class="earlier" onClick={() => setMore(more + atOnce)}>
          {t("talk.earlier", { n: Math.min(hidden, atOnce) })}
        </button>
      )}
      {items.slice(hidden).map((item) => (
        <Item key={`${item.kind} ${item.id}`} item={item} all={items} />
      ))}
      {p.live && questions.map((q) => <QuestionCard key={q.id} ask={askOf(q, p.session, p.ends(q.id))} />)}
      {p.view.active.length > 0 && questions.length === 0 && last?.kind !== "answer" && (
        <p class="works">
          <span class="breath" />
          {t("state.running")}
        </p>
      )}
    </Scroll>
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
    ...(d.digest ? { digest: d.digest } : {}),
    ...(d.description ? { description: d.description } : {}),
    ...(d.summary ? { summary: d.summary } : {}),
    ...(d.steps ? { steps: d.steps } : {}),
    ...(ends ? { expires_at: ends } : {}),
  };
}

function Item({ item, all }: { item: ViewItem; all: readonly ViewItem[] }): JSX.Element {
  switch (item.kind) {
    case "user":
      return (
        <article class="item user">
          <h3>{t("talk.you")}</h3>
          <p class="said">
            <Text most={20_000}>{item.text}</Text>
          </p>
        </article>
      );
    case "answer":
      return (
        <article class={item.step === undefined ? "item answer" : "item answer of-step"}>
          {item.step !== undefined && <h3>{t("talk.step", { title: stepTitle(item.step, item.run, all) })}</h3>}
          <Markdown text={item.text} done={item.done} />
          {!item.done && <span class="caret" aria-hidden="true" />}
        </article>
      );
    case "tool":
      return <ToolCard item={item} />;
    case "plan":
      return (
        <article class="item plan">
          <header>
            <h3>{t("talk.plan")}</h3>
            <Text most={300}>{item.summary}</Text>
            <span class="count">
              {t("talk.steps", { done: item.steps.filter((s) => s.status === "completed").length, all: item.steps.length })}
            </span>
          </header>
          <PlanGraph steps={item.steps} />
        </article>
      );
    case "end":
      return (
        <article class={`item end ${item.code === "RUN_CANCELLED" ? "cancelled" : "failed"}`}>
          <StateChip state={item.code === "RUN_CANCELLED" ? "cancelled" : "failed"} />
          <code>{item.code}</code>
          <Text most={2000}>{item.text}</Text>
        </article>
      );
  }
}

function stepTitle(step: string, run: string, all: readonly ViewItem[]): string {
  for (const p of all) if (p.kind === "plan" && p.run === run) for (const s of p.steps) if (s.id === step) return s.title;
  return step;
}

/** A call of a tool. A call whose outcome is unknown is loud: it may have had its effect. */
export function ToolCard({ item }: { item: Extract<ViewItem, { kind: "tool" }> }): JSX.Element {
  const unknown = item.status === "unknown";
  return (
    <details class={`item tool state-${item.status}`} open={unknown}>
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
      <h4>{t("talk.arguments")}</h4>
      <Code value={item.arguments} />
      {item.text !== "" && (
        <>
          <h4>{t("talk.result")}</h4>
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
