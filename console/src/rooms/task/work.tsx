import type { ListedQuestion } from "@waggle-dev/client";
import type { ComponentChildren, JSX } from "preact";
import { span } from "../../app.ts";
import { course, type Entry, type Leg } from "../../fold/course.ts";
import type { Attempt, TaskState } from "../../fold/task.ts";
import { Sign, StateChip, Text, Time, ViewOnly } from "../../parts/basics.tsx";
import { Code } from "../../parts/code.tsx";
import { Icon, type IconName } from "../../parts/icons.tsx";
import { Link } from "../../parts/link.tsx";
import { QuestionCard } from "../../parts/question.tsx";
import { problem } from "../../problem.ts";
import type { Route } from "../../route.ts";
import { t, type Word } from "../../words.ts";
import { chipOf, reasonOf } from "../swarm/tasks.tsx";

/** What has become of a task, what its agents did for it, and what it was given. */
export function Work({ id, task, questions }: { id: string; task: TaskState; questions: readonly ListedQuestion[] }): JSX.Element {
  const open = questions.filter((q) => q.log_id === id && q.kind === "task");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls it
    <section class="task-work" tabIndex={0} aria-label={t("task.work")}>
      {open.length > 0 && <ViewOnly why="question.viewer" />}
      {open.map((q) => (
        <QuestionCard key={q.id} ask={q} />
      ))}
      <Outcome task={task} />
      <Part title={t("task.attempts")}>
        <Course task={task} />
      </Part>
      <Part title={t("task.input")}>
        <Code value={task.input} />
      </Part>
      <Origin task={task} />
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

const remedies: Readonly<Record<string, Word>> = {
  AGENT_OFFLINE: "task.remedy.offline",
  AGENT_NOT_FOUND: "task.remedy.offline",
  AGENT_LOST: "task.remedy.lost",
  TASK_TIMEOUT: "task.remedy.late",
  TASK_EXECUTION_ERROR: "task.remedy.work",
};

/** The result, or why there is none and what helps. */
function Outcome({ task }: { task: TaskState }): JSX.Element | null {
  if (task.ended === "") return null;
  const remedy = remedies[task.code];
  return (
    <>
      {task.error && (
        <section class="failure">
          <h2>
            <Icon name="cross" />
            {t("task.failure", { problem: problem(task.code || "TASK_EXECUTION_ERROR") })}
          </h2>
          <p>
            <Text most={2000}>{task.error}</Text>
          </p>
          {remedy && <p class="about">{t(remedy)}</p>}
          {task.code === "AGENT_OFFLINE" && <Agents />}
        </section>
      )}
      {task.result !== undefined && task.result !== null && (
        <Part title={t("task.result")}>
          <Code value={task.result} />
        </Part>
      )}
    </>
  );
}

const Agents = () => (
  <p>
    <Link to={{ room: "swarm", tab: "agents" }}>{t("task.agents")}</Link>
  </p>
);

/** The attempts, each with what happened in it. */
function Course({ task }: { task: TaskState }): JSX.Element {
  const legs = course(task);
  const waits = task.queued !== "" || (task.attempts.length === 0 && task.ended === "");
  return (
    <>
      {legs.length === 0 && !waits && <p class="about">{t("task.attempts.none")}</p>}
      {legs.length > 0 && (
        <ol class="steps attempts">
          {legs.map((l) => (
            <One key={l.attempt?.n ?? 0} leg={l} />
          ))}
        </ol>
      )}
      {waits && (
        <div class="queued">
          <p>
            <Icon name="circle" />
            {task.queued ? t("task.waits", { reason: reasonOf(task.queued) }) : t("task.attempts.none")} {t("task.attempts.soon")}
          </p>
          <Agents />
        </div>
      )}
    </>
  );
}

/** What became of an attempt, in words: empty while nothing stands out. */
export function attemptText(a: Attempt): string {
  const says = a.says && a.says !== "delivered" && a.says !== a.end ? a.says : "";
  const word = a.to === undefined ? t("task.has") : a.lost ? t("task.lost", { reason: reasonOf(a.end) }) : "";
  return [word, says, a.refused > 0 ? t("task.refused", { n: a.refused }) : ""].filter(Boolean).join(" · ");
}

/** One agent's hold of the task. */
function One({ leg: { attempt: a, entries } }: { leg: Leg }): JSX.Element {
  return (
    <li>
      {a && (
        <div class="of">
          <StateChip state={a.to === undefined ? "running" : a.lost ? "failed" : chipOf(a.end)} small />
          <b>
            <Text>{a.agent}</Text>
          </b>
          <span class="n">{t("task.attempt.n", { n: a.n })}</span>
          <span class="about">
            <Text>{attemptText(a)}</Text>
          </span>
          <span class="when">
            <Time at={a.from} />
            {a.to && ` · ${span(Date.parse(a.to) - Date.parse(a.from))}`}
          </span>
        </div>
      )}
      {entries.length > 0 && (
        <ol class="entries-of">
          {entries.map((e) => (
            <Happened key={e.seq} e={e} />
          ))}
        </ol>
      )}
    </li>
  );
}

const icons: Record<Entry["kind"], IconName> = { call: "tool", child: "swarm", question: "hand", note: "bulb" };
const kinds: Record<Entry["kind"], Word> = { call: "task.call", child: "task.child", question: "task.question", note: "task.note" };
const askedWords: Record<Extract<Entry, { kind: "question" }>["of"]["state"], Word> = {
  waiting: "task.asks",
  answered: "task.answered",
  expired: "state.cancelled",
};
const asked = { waiting: "waiting", answered: "completed", expired: "cancelled" } as const;

/** Something that happened in an attempt. */
function Happened({ e }: { e: Entry }): JSX.Element {
  return (
    <li>
      <span class="kind" title={t(kinds[e.kind])}>
        <Icon name={icons[e.kind]} />
        <span class="only-read">{t(kinds[e.kind])}</span>
      </span>
      <Body e={e} />
    </li>
  );
}

function Body({ e }: { e: Entry }): JSX.Element {
  switch (e.kind) {
    case "call":
      return (
        <>
          <b>
            <Text>{e.of.tool}</Text>
          </b>
          {e.of.status === "completed" ? <Sign state="completed" /> : <StateChip state={e.of.status} small />}
          <span class="about">
            <Text most={200}>{[e.of.provider, e.of.error].filter(Boolean).join(" · ")}</Text>
          </span>
          <span class="when">{e.of.ms === undefined ? "" : span(e.of.ms)}</span>
        </>
      );
    case "child":
      return (
        <>
          <Link to={{ room: "task", id: e.of.id, view: "work" }}>
            <Text most={60}>{e.of.type || e.of.id}</Text>
          </Link>
          <StateChip state={chipOf(e.of.status)} small />
          <span class="about">
            <Text>{e.of.agent}</Text>
          </span>
        </>
      );
    case "question":
      return (
        <>
          <Text most={200}>{text(e.of.message)}</Text>
          <StateChip state={asked[e.of.state]} small text={t(askedWords[e.of.state])} />
          <span class="about">
            <Text most={200}>{answerOf(e.of)}</Text>
          </span>
        </>
      );
    case "note":
      return (
        <>
          <Text most={300}>{e.of.text}</Text>
          <span class="when">
            <Time at={e.of.at} />
          </span>
        </>
      );
  }
}

function answerOf(q: Extract<Entry, { kind: "question" }>["of"]): string {
  if (q.state === "expired") return t("task.expired");
  return [text(q.answer), q.by && t("facts.by", { who: q.by })].filter(Boolean).join(" · ");
}

function text(v: unknown): string {
  if (typeof v === "string") return v;
  return v === undefined || v === null ? "" : JSON.stringify(v);
}

/** Where the task comes from. */
function Origin({ task }: { task: TaskState }): JSX.Element {
  const to = (id: string): Route => ({ room: "task", id, view: "work" });
  const rows: [Word, string, Route | undefined][] = [
    ["task.wanted", task.wanted, undefined],
    ["task.retryOf", task.retryOf, to(task.retryOf)],
    ["task.parent", task.parent, to(task.parent)],
    task.kind === "session"
      ? ["task.session", task.session, { room: "sessions", id: task.session, view: "talk", q: "", state: "" }]
      : ["task.team", task.session, undefined],
  ];
  return (
    <dl class="origin">
      {rows.map(
        ([word, value, route]) =>
          value && (
            <div key={word}>
              <dt>{t(word)}</dt>
              <dd>
                {route ? (
                  <Link to={route}>
                    <Text>{value}</Text>
                  </Link>
                ) : (
                  <Text>{value}</Text>
                )}
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}
