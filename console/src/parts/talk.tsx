import type { Question } from "@waggle-dev/client";
import type { ViewItem } from "@waggle-dev/client/view";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { mayAct } from "../app.ts";
import type { Side } from "../fold/arrows.ts";
import { type Block, blocks } from "../fold/blocks.ts";
import { weight } from "../log/window.ts";
import type { Conversation } from "../model/conversation.ts";
import { ended } from "../model/ended.ts";
import type { LogModel } from "../model/log.ts";
import { problem } from "../problem.ts";
import { t } from "../words.ts";
import { Face, StateChip, Text } from "./basics.tsx";
import { Decided } from "./decision.tsx";
import { useGradually } from "./gradually.ts";
import { Icon } from "./icons.tsx";
import { Markdown } from "./markdown.tsx";
import { PlanCard } from "./plan.tsx";
import { type Ask, QuestionCard } from "./question.tsx";
import { Scroll } from "./scroll.tsx";
import { StepCard } from "./step.tsx";
import { Reasoning, Retried, Retrying, Stopped } from "./thought.tsx";
import { ToolCard } from "./tool.tsx";

/** The conversation of a session, or of a member of a team: what was said, called, planned and asked. */
export function Talk(p: { model: LogModel; live: boolean; asked?: readonly Ask[] }): JSX.Element {
  const { model, live } = p;
  const { talk } = model;
  const keys = talk.keys.value ?? [];
  const { earlier, later, partial, questions, active } = talk.state.value;
  const asked = (p.asked ?? questions.map((q) => askOf(q.question, model.id, q.ends))).filter((ask) => !live || !ended.value.has(ask.id));
  const shown = useGradually(keys, (key) => weight(talk.item(key).peek()));
  const { steps, notes } = talk.state.value;
  const all = useMemo(() => blocks(shown, (key) => talk.item<ViewItem>(key).peek(), { steps, notes }), [talk, shown, steps, notes]);
  const planned = all.findLast((b) => b.kind === "steps");
  const acts = live && !later && model.kind === "session" && mayAct.value ? planned : undefined;
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
      {all.map((b) =>
        b.kind === "item" ? (
          <Item key={b.key} of={b.key} talk={talk} live={live} />
        ) : (
          <Steps key={b.key} of={b} talk={talk} live={live} session={b === acts ? model.id : undefined} />
        ),
      )}
      {later && <Later move={(to) => model.move(to)} />}
      {!later &&
        asked.map((ask) => <QuestionCard key={ask.id} ask={ask} over={live ? undefined : <p class="about">{t("question.then")}</p>} />)}
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

type StepsBlock = Extract<Block, { kind: "steps" }>;

/** The steps of a run that have begun, or that will not. Of those of a session the reader can go on from those that failed. */
function Steps(p: { of: StepsBlock; talk: Conversation; live: boolean; session: string | undefined }): JSX.Element {
  const { of, talk, live } = p;
  const { steps, active } = talk.state.value;
  return (
    <section class="steps" aria-label={t("talk.steps.label")}>
      {of.steps.map((s) => (
        <StepCard
          key={s.id}
          of={s}
          note={steps[s.place]}
          live={live}
          loud={s.keys.some((key) => isUnknown(talk.item<ViewItem>(key).value))}
          acts={p.session === undefined ? undefined : { session: p.session, run: of.run, over: active === 0 }}
        >
          {s.keys.map((key) => (
            <Item key={key} of={key} talk={talk} live={live} />
          ))}
        </StepCard>
      ))}
    </section>
  );
}

const isUnknown = (item: ViewItem) => item.kind === "tool" && item.status === "unknown";

function Item({ of, talk, live }: { of: string; talk: Conversation; live: boolean }): JSX.Element {
  const item = talk.item<ViewItem>(of).value;
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
        <article class={item.step === undefined ? "item answer" : "item answer of-step"}>
          {item.step === undefined && <h2>{t("talk.answer")}</h2>}
          <Retried of={talk.state.value.notes[of]} />
          <Reasoning of={item} />
          {(item.text !== "" || !item.reasoning) && <Markdown text={item.text} done={item.done} />}
          {!item.done && (item.text !== "" || !item.reasoning) && <span class="caret" aria-hidden="true" />}
          {item.stop && <Stopped stop={item.stop} />}
        </article>
      );
    case "tool":
      return <ToolCard item={item} note={talk.state.value.notes[of]} live={live} />;
    case "plan":
      return <PlanCard item={item} notes={talk.state.value.steps} live={live} />;
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

/** What a side of messages of a team is called. */
export function sideName(side: Side): string {
  return side === "people" ? t("team.side.people") : side === "board" ? t("team.side.board") : side.slice(1);
}
