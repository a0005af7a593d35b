import type { CanonicalEvent } from "@waggle-dev/client";

/** What a bar of a trace shows. */
export type BarKind = "run" | "queue" | "job" | "model" | "tool" | "people" | "pause" | "step";
/** How what a bar shows has ended, if it has. */
export type BarState = "running" | "completed" | "failed" | "cancelled" | "unknown" | "waiting";

/** One bar: something that took a time. */
export interface Bar {
  id: string;
  kind: BarKind;
  run: string;
  /** Of a tool or a step; the stage and the attempt of a job. */
  name: string;
  from: number;
  /** undefined: it has not ended. */
  to: number | undefined;
  state: BarState;
  /** The sequence of the event that began it. */
  seq: number;
  /** The sequence of the event that ended it, if it has ended. */
  end?: number;
  /** The job that it belongs to, if any. */
  job?: string;
  /** Of one that has failed: a code of the error catalogue. */
  reason?: string;
}

/** How bars have changed: the first `keep` bars stay, and these follow them. */
export interface BarsPatch {
  keep: number;
  bars: readonly Bar[];
  until: number;
}

/** The bars after a change. */
export function changed(old: { bars: readonly Bar[] } | undefined, p: BarsPatch): { bars: readonly Bar[]; until: number } {
  return { bars: [...(old?.bars.slice(0, p.keep) ?? []), ...p.bars], until: p.until };
}

type Data = Record<string, unknown>;

/** Makes the bars of a log, one event after the other. A bar is a value that does not change any more. */
export class BarsBuilder {
  private all: Bar[] = [];
  /** The places of the bars that have not ended. */
  private open = new Map<string, number>();
  private last = 0;

  /** A builder that goes on from bars. */
  static from(bars: readonly Bar[], until: number): BarsBuilder {
    const f = new BarsBuilder();
    f.all = [...bars];
    f.open = new Map(bars.flatMap((b, i) => (b.to === undefined ? [[b.id, i] as const] : [])));
    f.last = until;
    return f;
  }

  /** A builder that goes on from here by itself: what either takes from now on does not show in the other. */
  fork(): BarsBuilder {
    const f = new BarsBuilder();
    f.all = [...this.all];
    f.open = new Map(this.open);
    f.last = this.last;
    return f;
  }

  /** The bars, in the order in which they began, and the time of the last event. */
  get bars(): { bars: readonly Bar[]; until: number } {
    return { bars: this.all, until: this.last };
  }

  /** Takes the next event. */
  take(e: CanonicalEvent): void {
    this.last = Math.max(this.last, Date.parse(e.time));
    takers[e.type]?.(this, e, e.data as Data);
  }

  /** @internal */
  opens(e: CanonicalEvent, kind: BarKind, key: string, name = "", state: BarState = "running"): void {
    const id = `${kind} ${key}`;
    const from = Date.parse(e.time);
    this.end(e, id, "failed");
    const { run_id: run, job_id } = e.data as Data;
    const job = text(job_id);
    const bar: Bar = { id, kind, run: text(run), name, from, to: undefined, state, seq: e.sequence, ...(job ? { job } : {}) };
    this.open.set(id, this.all.push(bar) - 1);
  }

  /** @internal */
  ends(e: CanonicalEvent, kind: BarKind, key: string, state: BarState): void {
    this.end(e, `${kind} ${key}`, state, codeOf(e));
  }

  /** @internal A call of the model has failed, although its message was discarded before. */
  requestOver(e: CanonicalEvent, message: string): void {
    this.ends(e, "model", message, "failed");
    this.callFailed((b) => b.id === `model ${message}`, codeOf(e));
  }

  /** @internal The last call of the model for what fails because of the model has failed. */
  lastCallOver(e: CanonicalEvent, run: string, job: string): void {
    const code = codeOf(e);
    if (!code.startsWith("MODEL_")) return;
    const call = this.callFailed((b) => b.kind === "model" && b.run === run && (b.job ?? "") === job, code);
    if (call) this.end(e, call.id, "failed", code);
  }

  /** Marks the newest bar that fits as failed unless it has completed. */
  private callFailed(fits: (b: Bar) => boolean, reason: string): Bar | undefined {
    const at = this.all.findLastIndex(fits);
    const bar = this.all[at];
    if (!bar || bar.state === "completed") return undefined;
    this.all[at] = { ...bar, state: "failed", ...(reason ? { reason } : {}) };
    return bar;
  }

  /** @internal The end of a run ends all that still belongs to it. */
  over(e: CanonicalEvent, run: string, state: BarState): void {
    for (const [id, at] of this.open) {
      const bar = this.all[at];
      if (bar?.run === run) this.end(e, id, state, bar.kind === "run" ? codeOf(e) : "");
    }
  }

  /** Ends a bar with an event. Of one that has failed it keeps the code of the failure. */
  private end(e: CanonicalEvent, id: string, state: BarState, code = ""): void {
    const at = this.open.get(id);
    const bar = at === undefined ? undefined : this.all[at];
    if (at === undefined || !bar) return;
    const to = Math.max(Date.parse(e.time), bar.from);
    this.all[at] = { ...bar, to, state, end: e.sequence, ...(state === "failed" && code ? { reason: code } : {}) };
    this.open.delete(id);
  }
}

const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");

const codeOf = (e: CanonicalEvent) => text((e.data as Data)["code"]);

/** The name of the pauses between the calls of a model for a piece of work. */
const modelOf = (d: Data) => `model ${text(d["run_id"])}/${text(d["job_id"])}`;

type Taker = (w: BarsBuilder, e: CanonicalEvent, d: Data) => void;

const runOver: Taker = (w, e, d) => w.over(e, text(d["run_id"]), e.type.slice(4) as BarState);
const toolOver: Taker = (w, e, d) => w.ends(e, "tool", text(d["call_id"]), e.type.slice(5) as BarState);
const jobOver: Taker = (w, e, d) => w.ends(e, "job", text(d["job_id"]), e.type.endsWith(".completed") ? "completed" : "failed");
const stepOver: Taker = (w, e, d) => {
  jobOver(w, e, d);
  w.ends(e, "step", `${text(d["run_id"])}/${text(d["step_id"])}`, e.type.slice(5) as BarState);
};

const takers: { [T in CanonicalEvent["type"]]?: Taker } = {
  "message.received": (w, e, d) => w.opens(e, "queue", text(d["run_id"]), "", "waiting"),
  "run.started": (w, e, d) => {
    w.ends(e, "queue", text(d["run_id"]), "completed");
    w.opens(e, "run", text(d["run_id"]));
  },
  "run.completed": runOver,
  "run.failed": (w, e, d) => {
    w.lastCallOver(e, text(d["run_id"]), text(d["job_id"]));
    runOver(w, e, d);
  },
  "run.cancelled": runOver,
  "job.started": (w, e, d) => {
    w.ends(e, "pause", text(d["job_id"]), "completed");
    w.opens(e, "job", text(d["job_id"]), `${text(d["stage"]) || "answer"} ${text(d["attempt"])}`); // ends an attempt that this one takes over from
  },
  "plan.completed": jobOver,
  "aggregate.completed": jobOver,
  "job.failed": (w, e, d) => {
    w.lastCallOver(e, text(d["run_id"]), text(d["job_id"]));
    jobOver(w, e, d);
  },
  "job.suspended": (w, e, d) => w.ends(e, "job", text(d["job_id"]), "completed"),
  "retry.scheduled": (w, e, d) => w.opens(e, "pause", text(d["job_id"]), text(d["code"]), "waiting"),
  "message.started": (w, e, d) => {
    w.ends(e, "pause", modelOf(d), "completed");
    w.opens(e, "model", text(d["message_id"]), text(d["model"]));
  },
  "message.completed": (w, e, d) => w.ends(e, "model", text(d["message_id"]), "completed"),
  "message.discarded": (w, e, d) => w.ends(e, "model", text(d["message_id"]), "cancelled"),
  "request.failed": (w, e, d) => {
    w.requestOver(e, text(d["message_id"]));
    w.opens(e, "pause", modelOf(d), text(d["code"]), "waiting");
  },
  "tool.called": (w, e, d) => w.opens(e, "tool", text(d["call_id"]), text(d["tool"])),
  "tool.completed": toolOver,
  "tool.failed": toolOver,
  "tool.unknown": toolOver,
  "input.requested": (w, e, d) => w.opens(e, "people", text(d["input_id"]), text(d["tool"]) || text(d["scope"]), "waiting"),
  "input.answered": (w, e, d) => w.ends(e, "people", text(d["input_id"]), d["decision"] === "reject" ? "cancelled" : "completed"),
  "input.expired": (w, e, d) => w.ends(e, "people", text(d["input_id"]), "failed"),
  "step.started": (w, e, d) => {
    const step = d["step"] as { id?: unknown; title?: unknown } | undefined;
    w.opens(e, "step", `${text(d["run_id"])}/${text(step?.id)}`, text(step?.title));
  },
  "step.completed": stepOver,
  "step.failed": stepOver,
  "step.cancelled": stepOver,
};

/** How much of the width a time without any bar may take. */
const idleShare = 0.04;

/** Places times on the width of a lane, in percent. Long times in which nothing happens are folded. */
export function axis(bars: readonly Bar[], end: number): { place: (time: number) => number } {
  const busy = busyTimes(bars, end);
  const work = Math.max(
    1,
    busy.reduce((sum, [from, to]) => sum + to - from, 0),
  );
  const fold = work * idleShare;
  const starts: number[] = [];
  let total = 0;
  for (const [i, [from, to]] of busy.entries()) {
    const before = busy[i - 1];
    if (before) total += Math.min(from - before[1], fold);
    starts.push(total);
    total += to - from;
  }
  total = Math.max(1, total);
  const place = (time: number) => {
    let [low, high] = [0, busy.length - 1]; // the last span that has begun lies between
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((busy[middle] as [number, number])[0] <= time) low = middle;
      else high = middle - 1;
    }
    const [from, to] = busy[low] as [number, number];
    return (((starts[low] as number) + Math.min(Math.max(0, time - from), to - from)) / total) * 100;
  };
  return { place };
}

/** The spans of time in which there is at least one bar, in order. */
function busyTimes(bars: readonly Bar[], end: number): readonly [number, number][] {
  const spans = bars.map((b) => [b.from, b.to ?? end] as const).sort((a, b) => a[0] - b[0]);
  const busy: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = busy.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  return busy;
}
