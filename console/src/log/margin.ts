import type { ViewItem } from "@waggle-dev/client/view";
import type { Bar } from "../fold/bars.ts";
import type { Margin, Note, StepNote } from "../fold/blocks.ts";
import type { Said } from "./states.ts";

/** What the bars of a log, and the plans among its items, say of the items of a window. */
export function marginOf({ items, bars = [] }: Said, from: number, to: number): Margin {
  const runs = new Set<string>();
  const plans = new Map<string, Plan>();
  for (let i = from; i < to; i++) {
    const item = items[i] as ViewItem;
    if (!("kind" in item)) continue;
    runs.add(item.run);
    if (item.kind === "plan") plans.set(item.run, item); // a plan that was given up has no steps that began
  }
  const w = new Writer();
  const all = of(runs, bars);
  for (const b of all) takers[b.kind]?.(w, b);
  for (const b of all) if (b.kind === "people") w.decide(b, all);
  const steps: Record<string, StepNote> = {};
  for (const [run, plan] of plans)
    for (const s of plan.steps) {
      const key = `${run}/${s.id}`;
      const begun = w.steps.get(key);
      const lost = s.status === "failed" || s.status === "cancelled";
      if (!begun && (s.status === "waiting" || (s.status === "cancelled" && s.text === ""))) continue;
      steps[key] = { ...(begun ?? { tries: 0 }), title: s.title, status: s.status, text: lost ? s.text : "" };
    }
  for (const [key, note] of w.steps) steps[key] ??= note;
  return { steps, notes: w.notes };
}

type Plan = Extract<ViewItem, { kind: "plan" }>;

/** The bars of runs. The newest are looked at first, and no further than to the messages that the runs answer. */
function of(runs: ReadonlySet<string>, all: readonly Bar[]): Bar[] {
  const found: Bar[] = [];
  const open = new Set(runs);
  for (let i = all.length - 1; i >= 0 && open.size > 0; i--) {
    const b = all[i] as Bar;
    if (!runs.has(b.run)) continue;
    found.push(b);
    if (b.kind === "queue") open.delete(b.run);
  }
  return found.reverse();
}

class Writer {
  readonly steps = new Map<string, StepNote>();
  readonly notes: Record<string, Note> = {};
  /** The steps of jobs, and the requests to models that have failed for them. */
  readonly jobs = new Map<string, string>();
  readonly failed = new Map<string, { failed: number; code: string }>();
  /** The jobs of calls. */
  readonly calls = new Map<string, string>();

  /** Notes the step in which people were asked: that of the job, of the call, or the only one that was on. */
  decide(b: Bar, all: readonly Bar[]): void {
    const call = nameOf(b).replace(/^approve_/, "");
    let step = this.jobs.get(b.job ?? this.calls.get(`${b.run} ${call}`) ?? "");
    if (step === undefined && b.name !== "plan") {
      const on = all.filter((s) => s.kind === "step" && s.run === b.run && s.from <= b.from && (s.to === undefined || s.to >= b.from));
      if (on.length === 1) step = this.jobs.get(on[0]?.job ?? "");
    }
    if (step !== undefined) this.notes[`decision ${b.run} ${nameOf(b)}`] = { step };
  }
}

/** The name of what a bar is about, without its kind. */
const nameOf = (b: Bar) => b.id.slice(b.kind.length + 1);

const spanOf = (b: Bar) => ({ from: b.from, ...(b.to === undefined ? {} : { to: b.to }) });

const statuses: Partial<Record<Bar["state"], StepNote["status"]>> = { completed: "completed", failed: "failed", cancelled: "cancelled" };

const takers: { [K in Bar["kind"]]?: (w: Writer, b: Bar) => void } = {
  step: (w, b) => {
    const key = nameOf(b);
    const old = w.steps.get(key);
    if (b.job) w.jobs.set(b.job, key.slice(b.run.length + 1));
    w.steps.set(key, {
      title: b.name,
      status: statuses[b.state] ?? "running",
      text: "",
      ...(b.reason ? { code: b.reason } : {}),
      began: old?.began ?? b.from,
      ...spanOf(b),
      tries: (old?.tries ?? 0) + 1,
    });
  },
  tool: (w, b) => {
    w.notes[`tool ${b.run} ${nameOf(b)}`] = spanOf(b);
    if (b.job) w.calls.set(`${b.run} ${nameOf(b)}`, b.job);
  },
  model: (w, b) => {
    const job = `${b.run} ${b.job ?? ""}`;
    const before = w.failed.get(job);
    if (b.state === "failed") w.failed.set(job, { failed: (before?.failed ?? 0) + 1, code: b.reason ?? "" });
    else if (b.state !== "cancelled" && before) {
      w.failed.delete(job);
      w.notes[`answer ${b.run} ${nameOf(b)}`] = before;
    }
  },
};
