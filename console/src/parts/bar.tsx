import type { CanonicalEvent } from "@waggle-dev/client";
import type { JSX } from "preact";
import { clock, span } from "../app.ts";
import { attemptsOf } from "../fold/attempts.ts";
import type { Bar } from "../fold/bars.ts";
import { usageOf } from "../fold/usage.ts";
import type { LogModel } from "../model/log.ts";
import { isRefusal, problem } from "../problem.ts";
import { t } from "../words.ts";
import { dollars, inAndOut } from "./amounts.ts";
import { look, StateChip, Text } from "./basics.tsx";
import { Code } from "./code.tsx";
import { TaskLink, useEvent } from "./detail.tsx";
import { Icon, type IconName } from "./icons.tsx";

/** The stages of a run that jobs are for. */
const stages = {
  answer: "trace.stage.answer",
  planning: "trace.stage.planning",
  solving: "trace.stage.solving",
  aggregation: "trace.stage.aggregation",
} as const;

/** What a bar is called. */
export function titleOf(b: Bar): string {
  const [stage = "", attempt = ""] = b.name.split(" ");
  switch (b.kind) {
    case "job": {
      const name = stage in stages ? t(stages[stage as keyof typeof stages]) : stage;
      return attempt === "1" ? name : t("trace.job.again", { stage: name, n: attempt });
    }
    case "model":
      return b.name || t("trace.model");
    case "people":
      return `${t("trace.people")}: ${b.name}`;
    case "step":
      return b.id === "task" ? t("task.title") : b.name;
    case "tool":
      return b.name;
    case "run":
    case "queue":
    case "pause":
      return t(`trace.${b.kind}`);
  }
}

/** Why it failed, or why there is a pause; empty if that needs no word. */
export function reasonOf(b: Bar): string {
  if (b.reason) return problem(b.reason);
  return b.kind === "pause" && b.name ? problem(b.name) : "";
}

/** How a bar has ended, as chips and signs show it. A pause that is over says nothing. */
function stateOf(b: Bar): string {
  if (b.state === "waiting" && b.kind !== "people") return b.kind === "pause" ? "paused" : "queued";
  return b.kind === "model" && b.state === "failed" && b.reason !== undefined && isRefusal(b.reason) ? "refused" : b.state;
}

const glyphs: Record<Bar["state"], IconName> = {
  running: "dot",
  waiting: "hand",
  completed: "tick",
  failed: "cross",
  cancelled: "slash",
  unknown: "unknown",
};

/** The sign of how a bar has ended. */
export function Glyph({ of: b }: { of: Bar }): JSX.Element {
  const state = stateOf(b);
  const calm = b.state === "completed";
  return (
    <span class={`glyph state-${look(state)}${calm ? " calm" : ""}`} title={t(`state.${b.state}`)}>
      <Icon name={glyphs[b.state]} />
      <span class="only-read">{t(`state.${b.state}`)}</span>
    </span>
  );
}

/** A bar with what went in and what came out. */
export function BarDetail(p: { model: LogModel; bar: Bar; end: number; open: (seq: number) => void; close: () => void }): JSX.Element {
  const b = p.bar;
  const used = usageOf(useEvent(p.model, b.end));
  const attempts = b.kind === "run" ? attemptsOf(p.model.bars.value?.bars ?? [], b.run) : undefined;
  return (
    <aside class="detail" aria-label={titleOf(b)}>
      <header>
        <h2>
          <Text most={200}>{titleOf(b)}</Text>
        </h2>
        <button type="button" class="quiet" aria-label={t("keys.close")} onClick={p.close}>
          <Icon name="cross" />
        </button>
      </header>
      <p class="facts">
        <StateChip state={stateOf(b)} small />
        <span>{t(`trace.kind.${b.kind}`)}</span>
        <span>{span((b.to ?? p.end) - b.from)}</span>
        <time>{clock(b.from, true)}</time>
        {used && <span>{inAndOut(used)}</span>}
        {used?.cost !== undefined && <span>{dollars(used.cost)}</span>}
        {attempts && <span title={t("facts.attempts.about")}>{t("facts.attempts", { n: attempts.n })}</span>}
      </p>
      {b.reason && <p class="fault">{problem(b.reason)}</p>}
      <div class="frames">
        <Part title={t("trace.began", { seq: b.seq })} model={p.model} seq={b.seq} open={p.open} />
        {b.end !== undefined && <Part title={t("trace.ended", { seq: b.end })} model={p.model} seq={b.end} open={p.open} />}
      </div>
    </aside>
  );
}

function Part(p: { title: string; model: LogModel; seq: number; open: (seq: number) => void }): JSX.Element {
  const e = useEvent(p.model, p.seq);
  return (
    <section>
      <h3>
        {p.title}
        <button type="button" class="quiet" onClick={() => p.open(p.seq)}>
          {t("trace.log")}
        </button>
      </h3>
      <TaskLink of={e} />
      {e && <Code value={shown(e)} />}
    </section>
  );
}

/** Members that name the place of an event, and stand in the head of the detail or nowhere. */
const placing = new Set(["run_id", "execution_id", "job_id", "attempt", "stage", "step_id", "call_id", "message_id", "digest"]);

/** What an event says, without the ids of what it belongs to. */
function shown(e: CanonicalEvent): unknown {
  const all = Object.entries(e.data as Record<string, unknown>).filter(([name]) => !placing.has(name));
  return { event: e.type, ...Object.fromEntries(all) };
}
