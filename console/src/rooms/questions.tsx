import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { epoch, mayAct, now, span, title } from "../app.ts";
import { answersTogether, chosenOf, type Group, grouped, nextEnd } from "../fold/inbox.ts";
import { awake, learn, results, snooze, snoozed, troubles } from "../model/inbox.ts";
import type { List } from "../model/lists.ts";
import { Face, Failure, Skeleton, ViewOnly } from "../parts/basics.tsx";
import { Link } from "../parts/link.tsx";
import { asksFor, QuestionCard } from "../parts/question.tsx";
import { t, type Word } from "../words.ts";
import { Become } from "./questions/become.tsx";
import { Put, Sleeping } from "./questions/snooze.tsx";
import { Together } from "./questions/together.tsx";

/** A card whose question is over stays so long. */
const stays = 5000;

/** Everything that waits for people, over all sessions, teams and tasks. */
export function Questions({ list }: { list: List<ListedQuestion> }): JSX.Element {
  useEffect(() => {
    title.value = t("questions.title");
  }, []);
  const open = useMemo(() => awake(list.rows), [list]).value;
  const { held, moved } = useHand();
  const { shown, over, newer, show } = useInbox(open, held);
  const [picked, pick] = useState<readonly string[]>([]);
  const [changed, change] = useState<ReadonlySet<string>>(new Set());
  const together = chosenOf(
    picked,
    (open ?? []).filter((q) => !changed.has(q.id)),
  );
  const chosen = new Set(together.map((q) => q.id));
  const turn = (q: ListedQuestion) =>
    pick(chosen.has(q.id) ? picked.filter((id) => id !== q.id) : [...together.filter((o) => o.scope === q.scope).map((o) => o.id), q.id]);
  const sleeping = (list.rows.value ?? []).filter((q) => snoozed.value[q.id] !== undefined);
  useOnward(over);
  if (list.error.value && !open) return <Failure error={list.error.value} again={() => void list.read()} />;
  return (
    <div class="questions" key={epoch.value}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it */}
      <section class="inbox" tabIndex={0} aria-label={t("questions.list")} onPointerMove={moved} onPointerDown={moved}>
        <header class="head">
          <div class="line">
            <h1>{t("questions.title")}</h1>
            {open && open.length > 0 && <Summary open={open} />}
            <span class="grow" />
            <Notify />
          </div>
        </header>
        {shown && shown.length > 0 && <ViewOnly why="question.viewer" />}
        {newer > 0 && (
          <button type="button" class="newer" onClick={show}>
            {t(newer === 1 ? "questions.newer.one" : "questions.newer", { n: newer })}
          </button>
        )}
        {!shown ? (
          <Skeleton rows={3} />
        ) : shown.length === 0 ? (
          <Face title={t("questions.empty")} text={t(sleeping.length > 0 ? "questions.empty.snoozed" : "questions.empty.text")} />
        ) : (
          grouped(shown).map((g) => (
            <OfKind
              key={g.scope}
              group={g}
              over={over}
              chosen={chosen}
              changed={changed}
              change={(id, on) =>
                change((all) => (all.has(id) === on ? all : new Set(on ? [...all, id] : [...all].filter((x) => x !== id))))
              }
              turn={turn}
              all={(on) => pick(on ? g.questions.filter((q) => !over.has(q.id)).map((q) => q.id) : [])}
            />
          ))
        )}
        {sleeping.length > 0 && <Sleeping all={sleeping} />}
      </section>
      {together.length > 0 && mayAct.value && <Together all={together} done={() => pick([])} />}
    </div>
  );
}

function Summary({ open }: { open: readonly ListedQuestion[] }): JSX.Element {
  const next = nextEnd(open);
  return (
    <p class="summary">
      {t(open.length === 1 ? "questions.open.one" : "questions.open", { n: open.length })}
      {next && (
        <>
          {" · "}
          {t("questions.next", { time: span(Math.max(0, Date.parse(next) - now.value)) })}
        </>
      )}
    </p>
  );
}

const kinds: Record<string, Word> = {
  plan: "questions.kind.plan",
  tool: "questions.kind.tool",
  budget: "questions.kind.budget",
  agent: "questions.kind.agent",
  client_tool: "questions.kind.client_tool",
};

/** The questions that ask for the same thing, the one that ends first on top. */
function OfKind(p: {
  group: Group;
  over: ReadonlySet<string>;
  chosen: ReadonlySet<string>;
  /** Those that a person is changing: they are answered one by one, as they were changed. */
  changed: ReadonlySet<string>;
  change: (id: string, on: boolean) => void;
  turn: (q: ListedQuestion) => void;
  all: (on: boolean) => void;
}): JSX.Element {
  const { scope, questions } = p.group;
  const several = questions.filter((q) => !p.over.has(q.id) && !p.changed.has(q.id) && answersTogether(q));
  const on = several.filter((q) => p.chosen.has(q.id)).length;
  const name = kinds[scope] ? t(kinds[scope]) : scope;
  const id = `kind-${scope}`;
  return (
    <section class="kind" aria-labelledby={id}>
      <header>
        <h2 id={id}>
          {name} <small>{questions.length - questions.filter((q) => p.over.has(q.id)).length}</small>
        </h2>
        {mayAct.value && several.length > 1 && (
          <label class="pick">
            <input
              type="checkbox"
              checked={on === several.length}
              ref={(e) => {
                if (e) e.indeterminate = on > 0 && on < several.length;
              }}
              onChange={(e) => p.all(e.currentTarget.checked)}
            />
            {t("questions.all")}
          </label>
        )}
      </header>
      <ul class="cards">
        {questions.map((q) => (
          <One
            key={q.id}
            q={q}
            over={p.over.has(q.id)}
            on={p.chosen.has(q.id)}
            picks={mayAct.value && several.length > 1 && several.includes(q)}
            change={(on) => p.change(q.id, on)}
            turn={() => p.turn(q)}
          />
        ))}
      </ul>
    </section>
  );
}

function One(p: {
  q: ListedQuestion;
  over: boolean;
  on: boolean;
  picks: boolean;
  change: (on: boolean) => void;
  turn: () => void;
}): JSX.Element {
  const { q } = p;
  const result = results.value.get(q.id);
  const name = asksFor(q);
  return (
    <li class={p.over ? "over" : p.on ? "on" : ""}>
      <QuestionCard
        ask={q}
        title
        trouble={troubles.value.get(q.id)}
        change={p.change}
        before={
          p.picks ? (
            <label class="pick">
              <input type="checkbox" data-pick checked={p.on} aria-label={t("questions.pick", { what: name })} onChange={p.turn} />
            </label>
          ) : undefined
        }
        after={!p.over && <Put name={name} put={(how) => snooze([q], how)} />}
        link={<Asks of={q} />}
        over={p.over ? <Become result={result} /> : undefined}
      />
    </li>
  );
}

/** Leads to what asks: a session, a member of a team, or a task. */
function Asks({ of: q }: { of: ListedQuestion }): JSX.Element | null {
  if (q.kind === "session")
    return <Link to={{ room: "sessions", id: q.log_id, view: "talk", q: "", state: "" }}>{t("question.show")}</Link>;
  if (q.kind === "task") return <Link to={{ room: "task", id: q.log_id, view: "work" }}>{t("question.show.task")}</Link>;
  if (!q.team_id) return null;
  return (
    <Link to={{ room: "teams", id: q.team_id, view: "tree", ...(q.asker ? { member: q.asker } : {}) }}>{t("question.show.team")}</Link>
  );
}

/** A hand that has not moved for so long is not about to press something. */
const rests = 4000;

/** Whether a hand with a mouse or a finger was at work a moment ago. */
function useHand(): { held: boolean; moved: () => void } {
  const [held, hold] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const moved = () => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => hold(false), rests);
    hold(true);
  };
  return { held, moved };
}

/**
 * The questions that the inbox shows: the open ones, and for a moment those that are over, at their places. While a person is in the
 * list nothing moves under their hand: what is new waits until they ask for it.
 */
function useInbox(open: readonly ListedQuestion[] | undefined, held: boolean) {
  const seen = useRef(new Map<string, { question: ListedQuestion; until: number }>());
  const asked = useRef(false);
  const [turn, again] = useState(0);
  return useMemo(() => {
    const over = new Set<string>();
    const show = () => {
      asked.current = true;
      again((n) => n + 1);
    };
    if (!open) return { shown: undefined, over, newer: 0, show };
    const time = Date.now();
    const ids = new Set(open.map((q) => q.id));
    const takes = !held || asked.current || seen.current.size === 0;
    asked.current = false;
    for (const q of open) if (takes || seen.current.has(q.id)) seen.current.set(q.id, { question: q, until: Number.POSITIVE_INFINITY });
    for (const [id, s] of seen.current) {
      if (ids.has(id)) continue;
      if (id in snoozed.peek()) seen.current.delete(id);
      else if (s.until === Number.POSITIVE_INFINITY) {
        s.until = time + stays;
        void learn(id);
        setTimeout(() => again((n) => n + 1), stays);
      } else if (s.until <= time) seen.current.delete(id);
    }
    const shown = [...seen.current.values()];
    for (const s of shown) if (s.until !== Number.POSITIVE_INFINITY) over.add(s.question.id);
    return { shown: shown.map((s) => s.question), over, newer: open.filter((q) => !seen.current.has(q.id)).length, show };
  }, [open, held, turn]);
}

/** Has the focus go on to the next question when the one that had it is over. */
function useOnward(over: ReadonlySet<string>): void {
  const at = useRef<HTMLElement>(null);
  useEffect(() => {
    const note = () => {
      at.current = document.activeElement?.closest<HTMLElement>("[data-question]") ?? at.current;
    };
    addEventListener("focusin", note);
    return () => removeEventListener("focusin", note);
  }, []);
  useEffect(() => {
    const card = at.current;
    if (!card || card.dataset["question"] !== undefined || !card.isConnected) return;
    at.current = null;
    if (document.activeElement !== document.body && !card.contains(document.activeElement)) return;
    const all = [...document.querySelectorAll<HTMLElement>(".inbox [data-question]")];
    const next = all.find((c) => card.compareDocumentPosition(c) & Node.DOCUMENT_POSITION_FOLLOWING) ?? all[0];
    (next ?? document.querySelector<HTMLElement>(".inbox h1"))?.focus();
  }, [over]);
}

/** Asks the browser, on a click, to tell of new questions while the tab is in the background. */
function Notify(): JSX.Element | null {
  const [permission, set] = useState(typeof Notification === "undefined" ? "denied" : Notification.permission);
  if (permission !== "default") return null;
  return (
    <button type="button" onClick={() => void Notification.requestPermission().then(set)}>
      {t("questions.notify")}
    </button>
  );
}
