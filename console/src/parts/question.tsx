import type { ListedQuestion } from "@waggle-dev/client";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { mayAct, reason } from "../app.ts";
import { canonical } from "../fold/canonical.ts";
import { cut, plain } from "../fold/text.ts";
import { whyEnded } from "../model/ended.ts";
import { decide } from "../model/inbox.ts";
import { t, type Word } from "../words.ts";
import { Left, Text } from "./basics.tsx";
import { Code } from "./code.tsx";
import { PlanEditor } from "./editor.tsx";
import { Icon } from "./icons.tsx";
import { later } from "./later.tsx";
import { dangling, type Editable, kept } from "./steps.ts";

/** What a card needs of a question: it comes from a list of the API or from a log. */
export type Ask = Pick<
  ListedQuestion,
  | "id"
  | "scope"
  | "tool"
  | "arguments"
  | "parameters"
  | "digest"
  | "description"
  | "summary"
  | "steps"
  | "expires_at"
  | "message"
  | "options"
  | "asker"
  | "title"
  | "cut"
>;

/** What a question asks, in a few words. */
export const asksFor = (ask: Pick<Ask, "scope" | "tool">): string =>
  t(words[ask.scope] ?? "question.agent", { tool: plain(cut(ask.tool ?? "", 120)) });

/** Asks a person, and sends what they answer. */
export function QuestionCard({
  ask,
  title,
  before,
  after,
  over,
  trouble,
  change,
  link,
}: {
  ask: Ask;
  title?: boolean;
  /** What stands before and after the heading, in an inbox. */
  before?: ComponentChildren;
  after?: ComponentChildren;
  /** What has become of it: it takes no answer any more. */
  over?: ComponentChildren;
  /** Why an answer that was given elsewhere on the page does not count. */
  trouble?: string | undefined;
  /** Is called when a person begins to change what is asked, and when it is again what it was. */
  change?: (on: boolean) => void;
  /** Goes to what asks. */
  link?: ComponentChildren;
}): JSX.Element {
  const [steps, setSteps] = useState<readonly Editable[]>(() => (ask.steps ?? []).map((step) => ({ step, dropped: false })));
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState("");
  const [editing, setEditing] = useState(false);
  const typed = useRef<() => unknown>(null);
  const changed = ask.scope === "plan" && JSON.stringify(kept(steps)) !== JSON.stringify(ask.steps ?? []);
  const broken = ask.scope === "plan" ? dangling(steps) : 0;
  const touched = changed || editing;
  useEffect(() => change?.(touched), [touched]);
  const send = async (decision: string) => {
    const edited = decision === "approve" && editing ? typed.current?.() : ask.arguments;
    if (decision === "approve" && editing && edited === undefined) return; // the editor says what is wrong
    const modified = decision === "approve" && (changed || canonical(edited) !== canonical(ask.arguments));
    setBusy(true);
    setOutcome("");
    try {
      await decide(ask, {
        decision: modified ? "modify" : decision,
        ...(modified ? (changed ? { steps: kept(steps) } : { arguments: edited }) : {}),
        ...(ask.digest ? { digest: ask.digest } : {}),
        ...(decision === "answer" ? { message: why } : why ? { feedback: why } : {}),
        ...(decision === "approve" && ask.scope === "client_tool" ? { result: why } : {}),
      });
    } catch (error) {
      setBusy(false);
      setOutcome(whyEnded(error) ?? reason(error));
    }
  };
  const asks = asksFor(ask);
  const acts = mayAct.value && over === undefined;
  const said = outcome || trouble;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a set of fields has a legend, and this has a heading
    <div role="group" class="question" data-question={over === undefined ? ask.id : undefined} tabIndex={-1} aria-label={asks}>
      <header>
        {before ?? <Icon name="hand" />}
        <h2>
          <Text most={200}>{asks}</Text>
          {ask.tool && ask.scope !== "tool" && (
            <code class="tool">
              <Text>{ask.tool}</Text>
            </code>
          )}
        </h2>
        <span class="left">{over === undefined && <Left until={ask.expires_at} />}</span>
        {after}
      </header>
      {title && (ask.title || ask.asker) && (
        <p class="about">
          <span>
            {ask.asker && <Text>{ask.asker}</Text>} {ask.title && <Text most={160}>{t("question.asks", { title: ask.title })}</Text>}
          </span>
          {link}
        </p>
      )}
      {(ask.description || (ask.summary && ask.scope === "plan")) && (
        <p>
          <Text most={600}>{ask.summary || ask.description || ""}</Text>
        </p>
      )}
      {ask.scope === "plan" && <PlanEditor steps={steps} change={setSteps} over={over !== undefined} />}
      {ask.arguments !== undefined && !editing && <Code value={ask.arguments} />}
      {editing && <Editor schema={ask.parameters} given={ask.arguments} read={typed} />}
      {ask.cut && <p class="fault">{t("question.cut")}</p>}
      {acts && editable(ask) && (
        <p class="edit">
          <button type="button" class="quiet" onClick={() => setEditing(!editing)}>
            {t(editing ? "question.unedit" : "question.edit")}
          </button>
        </p>
      )}
      {ask.message !== undefined && <Code value={ask.message} />}
      {ask.digest && !editing && <p class="digest">{t("question.digest", { digest: ask.digest.slice(0, 12) })}</p>}
      {broken > 0 && (
        <p class="fault" role="alert">
          {t("question.dangling", { n: broken })}
        </p>
      )}
      {over === undefined && said && (
        <p class="fault" role="alert">
          <Text most={400}>{said}</Text>
        </p>
      )}
      {over}
      {acts && (
        <Actions
          ask={ask}
          why={why}
          setWhy={setWhy}
          send={send}
          busy={busy}
          stuck={broken > 0 || ask.cut === true}
          changed={changed}
          edited={editing}
        />
      )}
    </div>
  );
}

const Editor = later(() => import("./arguments.tsx").then((m) => m.ArgumentsEditor));

/** Whether people may change the arguments: fields would show hidden characters as they want to be shown, so not those that have some. */
function editable(ask: Ask): boolean {
  const text = JSON.stringify(ask.arguments);
  return ask.parameters !== undefined && text !== undefined && plain(text) === text;
}

const words: Record<string, Word> = {
  plan: "question.plan",
  tool: "question.tool",
  client_tool: "question.client_tool",
  budget: "question.budget",
  agent: "question.agent",
};

function Actions(p: {
  ask: Ask;
  why: string;
  setWhy: (text: string) => void;
  send: (decision: string) => Promise<void>;
  busy: boolean;
  stuck: boolean;
  changed: boolean;
  edited: boolean;
}): JSX.Element {
  const free = p.ask.scope === "agent";
  const options = Array.isArray(p.ask.options) ? p.ask.options.filter((o) => typeof o === "string") : [];
  return (
    <footer>
      <input
        type="text"
        aria-label={t(free ? "question.answer" : "question.why")}
        placeholder={t(free ? "question.answer" : "question.why")}
        value={p.why}
        list={`of-${p.ask.id}`}
        onInput={(e) => p.setWhy(e.currentTarget.value)}
      />
      <datalist id={`of-${p.ask.id}`}>
        {options.map((o) => (
          <option key={o} value={o} />
        ))}
      </datalist>
      {free ? (
        <button type="button" class="primary" data-answer="approve" disabled={p.busy || p.stuck} onClick={() => void p.send("answer")}>
          {t("question.answer")}
        </button>
      ) : (
        <>
          <button type="button" class="primary" data-answer="approve" disabled={p.busy || p.stuck} onClick={() => void p.send("approve")}>
            <Icon name="tick" />
            {t(p.changed ? "question.changed" : p.edited ? "question.edited" : "question.approve")}
          </button>
          <button type="button" data-answer="reject" disabled={p.busy} onClick={() => void p.send("reject")}>
            <Icon name="cross" />
            {t("question.reject")}
          </button>
        </>
      )}
    </footer>
  );
}
