import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { epoch, title } from "../app.ts";
import { type List, soonest } from "../model/lists.ts";
import { Face, Failure, Skeleton, ViewOnly } from "../parts/basics.tsx";
import { Link } from "../parts/link.tsx";
import { QuestionCard } from "../parts/question.tsx";
import { t } from "../words.ts";

/** A card whose question has been answered stays so long. */
const stays = 5000;

/** Everything that waits for people, over all sessions, teams and tasks. */
export function Questions({ list }: { list: List<ListedQuestion> }): JSX.Element {
  useEffect(() => {
    title.value = t("questions.title");
  }, []);
  const rows = useLingering(list.rows.value);
  if (list.error.value && !rows) return <Failure error={list.error.value} again={() => void list.read()} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="questions" tabIndex={0} aria-label={t("questions.title")} key={epoch.value}>
      <header class="head">
        <div class="line">
          <h1>{t("questions.title")}</h1>
          <span class="grow" />
          <Notify />
        </div>
      </header>
      {rows && rows.length > 0 && <ViewOnly why="question.viewer" />}
      {!rows ? (
        <Skeleton rows={3} />
      ) : rows.length === 0 ? (
        <Face title={t("questions.empty")} text={t("questions.empty.text")} />
      ) : (
        <ul class="cards">
          {rows.map(({ question: q, gone }) => (
            <li key={q.id} class={gone ? "gone" : ""} inert={gone}>
              <QuestionCard ask={q} title />
              {q.kind === "session" && (
                <Link to={{ room: "sessions", id: q.log_id, view: "talk", q: "", state: "" }}>{t("question.show")}</Link>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The open questions, and for a moment those that have just been answered, at their places. */
function useLingering(open: readonly ListedQuestion[] | undefined): { question: ListedQuestion; gone: boolean }[] | undefined {
  const seen = useRef(new Map<string, { question: ListedQuestion; until: number }>());
  const [turn, again] = useState(0);
  return useMemo(() => {
    if (!open) return undefined;
    const now = Date.now();
    const ids = new Set(open.map((q) => q.id));
    for (const q of open) seen.current.set(q.id, { question: q, until: Number.POSITIVE_INFINITY });
    for (const [id, s] of seen.current) {
      if (ids.has(id)) continue;
      if (s.until === Number.POSITIVE_INFINITY) {
        s.until = now + stays;
        setTimeout(() => again((n) => n + 1), stays);
      } else if (s.until <= now) seen.current.delete(id);
    }
    return [...seen.current.values()]
      .filter((s) => s.until > now)
      .map((s) => ({ question: s.question, gone: s.until !== Number.POSITIVE_INFINITY }))
      .sort((a, b) => soonest(a.question, b.question));
  }, [open, turn]);
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
