import type { CanonicalEvent } from "@waggle-dev/client";

/** What may happen in a session, as often as it shall. */
export const whats = [
  "ask",
  "ask",
  "ask",
  "work",
  "work",
  "piece",
  "tool",
  "question",
  "answer",
  "plan",
  "step",
  "end",
  "end",
  "end",
  "again",
];

/**
 * A session that somebody might have had: messages that wait for the run that is on, steps, tools and questions inside of runs,
 * texts in pieces, runs that end in every way, and steps that are carried out again after the end of their run.
 */
export class Session {
  readonly events: CanonicalEvent[] = [];
  private readonly waiting: string[] = [];
  private readonly over: string[] = [];
  private run: string | undefined;
  private things = 0;
  private message: string | undefined;
  private asked: string | undefined;

  put(type: string, data: object): void {
    const sequence = this.events.length + 1;
    const time = new Date(sequence * 1000).toISOString();
    this.events.push({ type, data, time, sequence, id: String(sequence) } as unknown as CanonicalEvent);
  }

  do(what: string, n: number): void {
    const id = String(++this.things);
    if (what === "ask") {
      this.waiting.push(`r${id}`);
      this.put("message.received", { run_id: `r${id}`, message_id: `m${id}`, content: `message ${id}` });
    } else if (this.run === undefined) this.begin(what, n);
    else this.within(this.run, what, n, id);
  }

  private begin(what: string, n: number): void {
    const old = this.over[n % Math.max(1, this.over.length)];
    if (what === "again" && old) this.put("step.started", { run_id: old, step: { id: "s0", title: "Again" } });
    else if (what === "end" && this.waiting.length > 1) this.put("run.cancelled", { run_id: this.waiting.pop() });
    else {
      this.run = this.waiting.shift();
      if (this.run) this.put("run.started", { run_id: this.run });
    }
  }

  private within(run_id: string, what: string, n: number, id: string): void {
    const of = { run_id, stage: "solving", step_id: `s${n % 3}` };
    switch (what) {
      case "work":
        this.put("job.started", { ...of, job_id: `j${id}`, attempt: 1 });
        break;
      case "piece":
        if (n === 0 && this.message) {
          this.put("reasoning.completed", { ...of, message_id: this.message, content: id.length % 2 ? "all that it thought" : "" });
          this.put(n % 2 ? "message.discarded" : "message.completed", {
            ...of,
            message_id: this.message,
            content: id.length % 2 ? "all of it" : "",
            stop_reason: id.length % 2 ? "length" : "tool_calls",
          });
          this.message = undefined;
          break;
        }
        if (!this.message) {
          this.message = `a${id}`;
          this.put("message.started", { ...of, message_id: this.message, model: "demo" });
        }
        if (n === 5) {
          this.put("message.discarded", { ...of, message_id: this.message, reason: "the request to the model failed" });
          this.put("request.failed", {
            ...of,
            message_id: this.message,
            code: "E",
            message: "no",
            try: 1,
            max_tries: 3,
            retry_after_ms: 10,
          });
          this.message = undefined;
          break;
        }
        this.put(n % 4 === 1 ? "reasoning.delta" : "message.delta", { ...of, message_id: this.message, text: `piece ${id} ` });
        break;
      case "tool":
        this.put("tool.called", { run_id, call_id: `c${n % 3}`, tool: "read", arguments: { n } });
        this.put(n < 3 ? "tool.unknown" : "tool.completed", { run_id, call_id: `c${n % 3}`, result: "ok", message: "lost" });
        break;
      case "question":
        this.asked = `q${id}`;
        this.put("input.requested", { run_id, input_id: this.asked, scope: "tool", tool: "write", timeout_seconds: 60 });
        break;
      case "answer":
        if (this.asked) this.put("input.answered", { run_id, input_id: this.asked, decision: "approve" });
        this.asked = undefined;
        break;
      case "plan":
        this.put("plan.completed", {
          run_id,
          plan_id: `p${id}`,
          steps: [0, 1, 2].map((i) => ({ id: `s${i}`, title: `Step ${i}` })),
        });
        break;
      case "step":
        this.put("step.started", { run_id, step: { id: `s${n % 3}`, title: "A step" } });
        this.put(n < 3 ? "step.failed" : "step.completed", { run_id, step_id: `s${n % 3}`, output: "done", message: "no" });
        break;
      case "end":
        this.put(["run.completed", "run.failed", "run.cancelled"][n % 3] as string, {
          run_id,
          content: "the end",
          code: "E",
          message: "failed",
        });
        this.over.push(run_id);
        this.run = undefined;
        this.message = undefined;
    }
  }
}
