import { useSignalEffect } from "@preact/signals";
import type { ListedQuestion } from "@waggle-dev/client";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { mayAct, reason, say, span, title } from "../app.ts";
import type { Attempt, TaskState } from "../fold/task.ts";
import type { List } from "../model/lists.ts";
import { LogModel } from "../model/log.ts";
import { cancelTask, retryTask } from "../model/swarm.ts";
import { Face, Failure, StateChip, Text, Time, ViewOnly } from "../parts/basics.tsx";
import { Code } from "../parts/code.tsx";
import { Head } from "../parts/head.tsx";
import { Icon } from "../parts/icons.tsx";
import { Link } from "../parts/link.tsx";
import { QuestionCard } from "../parts/question.tsx";
import { go, type Route, taskViews } from "../route.ts";
import { t } from "../words.ts";
import { LogView } from "./logview.tsx";
import { chipOf, reasonOf } from "./swarm/tasks.tsx";

type Place = Extract<Route, { room: "task" }>;

const back = () => go({ room: "swarm", tab: "tasks" });

/** One task: who had it, what they did, and its log, as of now or as of any event. */
export function TaskRoom({ at, questions }: { at: Place; questions: List<ListedQuestion> }): JSX.Element {
  const model = useMemo(() => new LogModel("task", at.id, { part: at.view, at: at.at }), [at.id]);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => model.seek(at.at), [model, at.at]);
  useEffect(() => model.show(at.view), [model, at.view]);
  useSignalEffect(() => {
    title.value = `${nameOf(model)} · ${t("swarm.tasks")}`;
  });
  if (model.error.value && model.head === 0) {
    if (model.missing) return <Face title={t("task.none")} text={t("task.none.text")} action={{ text: t("task.back"), go: back }} />;
    return <Failure error={model.error.value} again={() => model.read()} />;
  }
  const task = model.summary.value.task;
  const past = model.inPast;
  const change = (to: Partial<Place>) => go({ ...at, ...to } as Place, "replace");
  const seek = (to: number | undefined, how: "passes" | "stays") => {
    model.seek(to);
    if (how === "stays") change({ at: to });
  };
  const { unknowns } = model.summary.value;
  const ready = at.view === "log" ? model.head > 0 : at.view === "work" ? task?.created : model.bars.value;
  return (
    <section class={past ? "session task past" : "session task"} aria-label={nameOf(model)}>
      <Head
        model={model}
        name={nameOf(model)}
        label={t("task.views")}
        state={<StateChip state={chipOf(task?.status ?? "queued")} />}
        back={{ label: t("task.back"), go: back }}
        views={taskViews.map((id) => ({ id, text: t(`task.${id}`) }))}
        view={at.view}
        turn={(view) => change({ view })}
        seek={seek}
      >
        {task && !past && mayAct.value && <Acts id={at.id} task={task} />}
      </Head>
      <LogView
        model={model}
        view={at.view}
        ready={!!ready && task !== undefined}
        loud={unknowns > 0 ? t("task.unknowns", { n: unknowns }) : ""}
        toLog={() => change({ view: "log" })}
      >
        {task && <Work id={at.id} task={task} questions={past ? [] : (questions.rows.value ?? [])} />}
      </LogView>
    </section>
  );
}

const nameOf = (model: LogModel) => model.summary.value.name || t("task.title");

/** Cancel, or submit again. */
function Acts({ id, task }: { id: string; task: TaskState }): JSX.Element | null {
  const [busy, setBusy] = useState(false);
  const run = (work: () => Promise<void>) => {
    setBusy(true);
    work()
      .catch((error) => say(reason(error)))
      .finally(() => setBusy(false));
  };
  if (task.ended === "")
    return (
      <button
        type="button"
        aria-label={t("task.cancel")}
        disabled={busy}
        onClick={() =>
          run(async () => {
            await cancelTask(id);
            say(t("task.cancelled"));
          })
        }
      >
        <Icon name="stop" />
        <span class="wide">{t("task.cancel")}</span>
      </button>
    );
  if (task.status === "completed") return null;
  return (
    <button
      type="button"
      aria-label={t("task.retry")}
      disabled={busy}
      onClick={() =>
        run(async () => {
          const again = await retryTask(id);
          say(t("task.retried"));
          go({ room: "task", id: again, view: "work" });
        })
      }
    >
      <Icon name="play" />
      {t("task.retry")}
    </button>
  );
}

function Work({ id, task, questions }: { id: string; task: TaskState; questions: readonly ListedQuestion[] }): JSX.Element {
  const open = questions.filter((q) => q.log_id === id && q.kind === "task");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="task-work" tabIndex={0} aria-label={t("task.work")}>
      <About task={task} />
      {open.length > 0 && <ViewOnly why="question.viewer" />}
      {open.map((q) => (
        <QuestionCard key={q.id} ask={q} />
      ))}
      <Part title={t("task.attempts")}>
        {task.attempts.length === 0 && <p class="about">{t("task.attempts.none")}</p>}
        <ol class="steps attempts">
          {task.attempts.map((a) => (
            <One key={a.n} attempt={a} />
          ))}
        </ol>
        {task.queued && (
          <p class="about">
            <Text>{t("task.waits", { reason: reasonOf(task.queued) })}</Text>
          </p>
        )}
      </Part>
      {task.ended !== "" && (task.result !== undefined || task.error !== "") && (
        <Part title={t("task.result")}>
          {task.error && (
            <p class="fault">
              <Text most={600}>{task.error}</Text>
            </p>
          )}
          {task.result !== undefined && task.result !== null && <Code value={task.result} />}
        </Part>
      )}
      <Part title={t("task.input")}>
        <Code value={task.input} />
      </Part>
      <Below task={task} />
    </section>
  );
}

function Part(p: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <section class="part">
      <h2>{p.title}</h2>
      {p.children}
    </section>
  );
}

/** Where the task comes from. */
function About({ task }: { task: TaskState }): JSX.Element {
  const to = (id: string): Route => ({ room: "task", id, view: "work" });
  return (
    <dl class="facts">
      <dt>{t("task.wanted")}</dt>
      <dd>
        <Text>{task.wanted}</Text>
      </dd>
      {task.principal && (
        <>
          <dt>{t("task.by")}</dt>
          <dd>
            <Text>{task.principal}</Text>
          </dd>
        </>
      )}
      {task.retryOf && (
        <>
          <dt>{t("task.retryOf")}</dt>
          <dd>
            <Link to={to(task.retryOf)}>
              <Text>{task.retryOf}</Text>
            </Link>
          </dd>
        </>
      )}
      {task.parent && (
        <>
          <dt>{t("task.parent")}</dt>
          <dd>
            <Link to={to(task.parent)}>
              <Text>{task.parent}</Text>
            </Link>
          </dd>
        </>
      )}
      {task.session && (
        <>
          <dt>{t(task.kind === "session" ? "task.session" : "task.team")}</dt>
          <dd>
            {task.kind === "session" ? (
              <Link to={{ room: "sessions", id: task.session, view: "talk", q: "", state: "" }}>
                <Text>{task.session}</Text>
              </Link>
            ) : (
              <Text>{task.session}</Text>
            )}
          </dd>
        </>
      )}
    </dl>
  );
}

/** One agent's hold of the task. */
function One({ attempt: a }: { attempt: Attempt }): JSX.Element {
  const state = a.to === undefined ? "running" : a.lost ? "failed" : chipOf(a.end);
  const says = a.says && a.says !== "delivered" ? a.says : "";
  const word = a.to === undefined ? t("task.has") : a.lost ? t("task.lost", { reason: reasonOf(a.end) }) : "";
  return (
    <li>
      <span class="n">{t("task.attempt.n", { n: a.n })}</span>
      <b>
        <Text>{a.agent}</Text>
      </b>
      <StateChip state={state} small />
      <span class="about">
        <Text>{[word, says, a.refused > 0 ? t("task.refused", { n: a.refused }) : ""].filter(Boolean).join(" · ")}</Text>
      </span>
      <span class="when">
        <Time at={a.from} />
        {a.to && ` · ${span(Date.parse(a.to) - Date.parse(a.from))}`}
      </span>
    </li>
  );
}

/** What happened within the task. */
function Below({ task }: { task: TaskState }): JSX.Element {
  return (
    <>
      {task.calls.length > 0 && (
        <Part title={t("task.calls")}>
          <ol class="steps">
            {task.calls.map((c) => (
              <li key={c.id}>
                <b>
                  <Text>{c.tool}</Text>
                </b>
                <StateChip state={c.status} small />
                <span class="about">
                  <Text most={200}>{[c.provider, c.error].filter(Boolean).join(" · ")}</Text>
                </span>
                <span class="when">{c.ms === undefined ? "" : span(c.ms)}</span>
              </li>
            ))}
          </ol>
        </Part>
      )}
      {task.children.length > 0 && (
        <Part title={t("task.children")}>
          <ol class="steps">
            {task.children.map((c) => (
              <li key={c.id}>
                <Link to={{ room: "task", id: c.id, view: "work" }}>
                  <Text most={60}>{c.type || c.id}</Text>
                </Link>
                <StateChip state={chipOf(c.status)} small />
                <span class="about">
                  <Text>{c.agent}</Text>
                </span>
              </li>
            ))}
          </ol>
        </Part>
      )}
      {task.questions.length > 0 && (
        <Part title={t("task.questions")}>
          <ol class="steps">
            {task.questions.map((q) => (
              <li key={q.id}>
                <Text most={200}>{text(q.message)}</Text>
                <StateChip state={q.state === "waiting" ? "waiting" : q.state === "answered" ? "completed" : "cancelled"} small />
                <span class="about">
                  <Text most={200}>{q.state === "expired" ? t("task.expired") : text(q.answer)}</Text>
                </span>
              </li>
            ))}
          </ol>
        </Part>
      )}
      {task.notes.length > 0 && (
        <Part title={t("task.notes")}>
          <ol class="steps">
            {task.notes.map((n) => (
              <li key={n.seq}>
                <Text most={300}>{n.text}</Text>
                <span class="when">
                  <Time at={n.at} />
                </span>
              </li>
            ))}
          </ol>
        </Part>
      )}
    </>
  );
}

function text(v: unknown): string {
  if (typeof v === "string") return v;
  return v === undefined || v === null ? "" : JSON.stringify(v);
}
