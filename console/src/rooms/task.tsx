import { useSignalEffect } from "@preact/signals";
import type { ListedQuestion } from "@waggle-dev/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { clock, mayAct, now, reason, say, span, title } from "../app.ts";
import type { Bar } from "../fold/bars.ts";
import type { TaskState } from "../fold/task.ts";
import type { List } from "../model/lists.ts";
import { LogModel } from "../model/log.ts";
import { cancelTask, retryTask } from "../model/swarm.ts";
import { Face, Failure, StateChip } from "../parts/basics.tsx";
import { Facts } from "../parts/facts.tsx";
import { Head } from "../parts/head.tsx";
import { Icon } from "../parts/icons.tsx";
import { go, type Route, taskViews } from "../route.ts";
import { t } from "../words.ts";
import { LogView } from "./logview.tsx";
import { chipOf } from "./swarm/tasks.tsx";
import { attemptText, Work } from "./task/work.tsx";

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
        state={<StateChip state={chipOf(task?.status ?? "queued")} text={task?.status === "waiting_input" ? t("task.asks") : undefined} />}
        back={{ label: t("task.back"), go: back }}
        views={taskViews.map((id) => ({ id, text: t(`task.${id}`) }))}
        view={at.view}
        turn={(view) => change({ view })}
        seek={seek}
        facts={task?.created && <Facts all={factsOf(task, past ? Date.parse(model.place.value?.time ?? "") : undefined)} />}
      >
        {task && !past && mayAct.value && <Acts id={at.id} task={task} />}
      </Head>
      <LogView
        model={model}
        view={at.view}
        ready={!!ready && task !== undefined}
        loud={unknowns > 0 ? t("task.unknowns", { n: unknowns }) : ""}
        toLog={() => change({ view: "log" })}
        about={task && ((b) => aboutOf(task, b))}
      >
        {task && <Work id={at.id} task={task} questions={past ? [] : (questions.rows.value ?? [])} />}
      </LogView>
    </section>
  );
}

const nameOf = (model: LogModel) => model.summary.value.name || t("task.title");

/** Who has the task and who gave it, when it began, and how long it took; `past`: up to that time. */
function factsOf(task: TaskState, past: number | undefined): (string | undefined)[] {
  const [last, began] = [task.attempts.at(-1), Date.parse(task.created)];
  const until = task.ended ? Date.parse(task.ended) : (past ?? Math.max(began, Math.floor(now.value / 1000) * 1000));
  const long = Number.isNaN(until) ? "" : span(Math.max(0, until - began));
  return [
    last?.agent || t("task.facts.for", { who: task.wanted }),
    last && last.n > 1 ? t("task.attempt.n", { n: last.n }) : undefined,
    task.ended ? long : t("task.facts.since", { time: long }),
    t("task.facts.at", { time: clock(task.created) }),
    task.principal ? t("facts.by", { who: task.principal }) : undefined,
  ];
}

/** What became of an attempt, for its bar in the trace. */
function aboutOf(task: TaskState, b: Bar): string {
  const a = task.attempts.find((x) => b.id === `attempt ${x.n}`);
  return a ? attemptText(a) : "";
}

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
      <Icon name="again" />
      <span class="wide">{t("task.retry")}</span>
    </button>
  );
}
