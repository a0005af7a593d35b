import type { CanonicalEvent } from "@waggle-dev/client";

/** One thing that a run did: it called a model or a tool, carried out a step, asked people, or answered. */
export interface Deed {
  kind: "step" | "model" | "tool" | "people" | "answer";
  /** The title of the step that it belongs to; empty: of none. A step belongs to itself. */
  step: string;
  /** Of a tool, a model or a step; the scope of a question. */
  name: string;
  state: "running" | "completed" | "partly" | "failed" | "cancelled" | "unknown" | "waiting";
  /** How long it took; undefined: it has not ended. */
  ms: number | undefined;
  /** What it was given and what came of it. */
  value: Record<string, unknown>;
  /** The event that began it. */
  seq: number;
}

/** A run, as it is compared with another one. */
export interface Sheet {
  question: string;
  mode: string;
  state: Deed["state"];
  ms: number | undefined;
  input: number;
  /** Of the input: what the provider had in its cache. */
  cached: number;
  output: number;
  /** Undefined: no price is known. */
  cost: number | undefined;
  deeds: readonly Deed[];
}

/** Makes the sheet of a run of its events. */
export function sheetOf(events: Iterable<CanonicalEvent>): Sheet {
  const f = new RunFold();
  for (const e of events) f.take(e);
  return f.sheet;
}

type Open = Deed & { key: string; from: number };
type Data = Record<string, unknown>;

class RunFold {
  private readonly deeds: Open[] = [];
  private readonly titles = new Map<string, string>();
  private readonly whole: Omit<Sheet, "deeds"> = {
    question: "",
    mode: "",
    state: "running",
    ms: undefined,
    input: 0,
    cached: 0,
    output: 0,
    cost: undefined,
  };
  private from = 0;

  get sheet(): Sheet {
    return { ...this.whole, deeds: this.deeds.map(({ key: _, from: __, ...deed }) => deed) };
  }

  take(e: CanonicalEvent): void {
    takers[e.type]?.(this, e.data as Data, e);
  }

  /** @internal */
  begin(e: CanonicalEvent, what: Partial<Omit<Sheet, "deeds">>): void {
    Object.assign(this.whole, what);
    this.from = Date.parse(e.time);
  }

  /** @internal */
  uses(d: Data): void {
    this.whole.input += Number(d["input_tokens"] ?? 0);
    this.whole.cached += Number(d["cached_tokens"] ?? 0);
    this.whole.output += Number(d["output_tokens"] ?? 0);
    if (typeof d["cost_usd"] === "number") this.whole.cost = (this.whole.cost ?? 0) + d["cost_usd"];
  }

  /** @internal */
  title(id: string, title: string): void {
    this.titles.set(id, title);
  }

  /** @internal */
  add(e: CanonicalEvent, kind: Deed["kind"], id: unknown, name: string, value: Data, state: Deed["state"] = "running"): void {
    const step = kind === "step" ? name : (this.titles.get(String((e.data as Data)["step_id"] ?? "")) ?? "");
    this.deeds.push({
      kind,
      step,
      name,
      state,
      ms: undefined,
      value: known(value),
      seq: e.sequence,
      key: `${kind} ${id}`,
      from: Date.parse(e.time),
    });
  }

  /** @internal */
  close(e: CanonicalEvent, kind: Deed["kind"], id: unknown, state: Deed["state"], value: Data): void {
    const i = this.deeds.findLastIndex((d) => d.key === `${kind} ${id}`);
    const d = this.deeds[i];
    if (d) this.deeds[i] = { ...d, state, ms: Date.parse(e.time) - d.from, value: { ...d.value, ...known(value) } };
  }

  /** @internal */
  end(e: CanonicalEvent, state: Deed["state"]): void {
    this.whole.state = state;
    this.whole.ms = Date.parse(e.time) - this.from;
  }
}

const takers: { [T in CanonicalEvent["type"]]?: (f: RunFold, d: Data, e: CanonicalEvent) => void } = {
  "message.received": (f, d, e) => f.begin(e, { question: String(d["content"]) }),
  "run.started": (f, d, e) => f.begin(e, { mode: String(d["mode"] ?? "") }),
  "run.completed": (f, d, e) => {
    if (d["content"]) f.add(e, "answer", "", "", { text: parsed(d["content"]) }, "completed");
    f.end(e, d["outcome"] === "partial_success" ? "partly" : "completed");
  },
  "run.failed": (f, d, e) => {
    f.add(e, "answer", "", "", { code: d["code"], message: d["message"] }, "failed");
    f.end(e, "failed");
  },
  "run.cancelled": (f, _, e) => f.end(e, "cancelled"),
  "usage.recorded": (f, d) => f.uses(d),
  "step.started": (f, d, e) => {
    const { id, title } = d["step"] as { id: string; title: string };
    f.title(id, title);
    f.add(e, "step", id, title, {});
  },
  "step.completed": (f, d, e) => f.close(e, "step", d["step_id"], "completed", { output: parsed(d["output"]) }),
  "step.failed": (f, d, e) => f.close(e, "step", d["step_id"], "failed", { message: d["message"] }),
  "step.cancelled": (f, d, e) => f.close(e, "step", d["step_id"], "cancelled", {}),
  "message.started": (f, d, e) => f.add(e, "model", d["message_id"], String(d["model"] ?? ""), {}),
  "message.completed": (f, d, e) =>
    f.close(e, "model", d["message_id"], "completed", { text: parsed(d["content"]), calls: callsOf(d["tool_calls"]) }),
  "message.discarded": (f, d, e) => f.close(e, "model", d["message_id"], "failed", {}),
  "tool.called": (f, d, e) => f.add(e, "tool", d["call_id"], String(d["tool"]), { arguments: d["arguments"] }),
  "tool.completed": (f, d, e) => f.close(e, "tool", d["call_id"], "completed", { result: parsed(d["result"]) }),
  "tool.failed": (f, d, e) => f.close(e, "tool", d["call_id"], "failed", { code: d["code"], message: d["message"] }),
  "tool.unknown": (f, d, e) => f.close(e, "tool", d["call_id"], "unknown", {}),
  "input.requested": (f, d, e) =>
    f.add(e, "people", d["input_id"], String(d["tool"] ?? d["scope"]), { arguments: d["arguments"] }, "waiting"),
  "input.answered": (f, d, e) => f.close(e, "people", d["input_id"], "completed", { decision: d["decision"], feedback: d["feedback"] }),
  "input.expired": (f, d, e) => f.close(e, "people", d["input_id"], "cancelled", {}),
};

/** The calls of a message without their ids, which no two runs share. */
function callsOf(calls: unknown): unknown {
  return Array.isArray(calls) && calls.length > 0 ? calls.map((c: Data) => ({ name: c["name"], arguments: c["arguments"] })) : undefined;
}

/** A text that is a JSON object or a list as what it is, so that its members can be compared. */
function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** The members that have a value. */
function known(value: Data): Data {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined && v !== null && v !== ""));
}

/** The types of events that a sheet is made of: texts in pieces are not among them. */
export const typesOfSheet: readonly string[] = Object.keys(takers);
