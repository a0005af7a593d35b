import type { CanonicalEvent } from "@waggle-dev/client";

const longest = 160;

/** One line about an event, for lists: what a person would say happened, from its own members. */
export function line(e: CanonicalEvent): string {
  const d = e.data as Record<string, unknown>;
  const parts: string[] = said[e.type]?.(d) ?? [];
  for (const name of members[e.type] ?? general) {
    const value = d[name];
    if (value === undefined || value === null || value === "") continue;
    parts.push(typeof value === "object" ? (JSON.stringify(value) ?? "") : String(value));
  }
  const text = parts.join(" · ");
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** What members alone do not say. */
const said: Partial<Record<CanonicalEvent["type"], (d: Record<string, unknown>) => string[]>> = {
  "usage.recorded": (d) => {
    const cached = Number(d["cached_tokens"] ?? 0);
    const parts = [`${d["input_tokens"] ?? 0} tokens in${cached > 0 ? ` (${cached} cached)` : ""}, ${d["output_tokens"] ?? 0} out`];
    if (typeof d["cost_usd"] === "number") parts.push(`$${Number(d["cost_usd"].toPrecision(3))}`);
    return parts;
  },
  "job.suspended": (d) => {
    const n = Array.isArray(d["inputs"]) ? d["inputs"].length : 0;
    return [n === 1 ? "waits for an answer" : `waits for ${n} answers`];
  },
};

const general = ["title", "name", "content", "text", "message", "status", "state", "tool", "decision", "outcome"];

const members: Partial<Record<CanonicalEvent["type"], readonly string[]>> = {
  "usage.recorded": ["model"],
  "job.suspended": ["inputs"],
  "session.created": ["dialect", "principal"],
  "message.received": ["content", "mode", "principal"],
  "run.started": ["content", "mode"],
  "run.completed": ["outcome", "content"],
  "run.failed": ["code", "message"],
  "run.cancelled": ["reason"],
  "job.started": ["stage", "attempt", "model", "worker"],
  "message.started": ["role", "model"],
  "message.delta": ["text"],
  "reasoning.delta": ["text"],
  "reasoning.completed": ["content"],
  "request.failed": ["code", "message", "try", "max_tries", "next_model"],
  "message.completed": ["content"],
  "tool.called": ["tool", "arguments"],
  "tool.started": ["tool"],
  "tool.completed": ["tool", "result"],
  "tool.failed": ["tool", "code", "message"],
  "tool.unknown": ["tool", "message"],
  "input.requested": ["scope", "tool", "summary", "arguments"],
  "input.answered": ["decision", "by", "tool", "feedback"],
  "input.expired": ["scope", "timeout_seconds"],
  "plan.completed": ["summary"],
  "step.started": ["step"],
  "step.completed": ["step_id", "output"],
  "step.failed": ["step_id", "message"],
  "step.cancelled": ["step_id", "title", "reason"],
  "job.failed": ["code", "message", "try", "max_tries"],
  "retry.scheduled": ["code", "message", "attempt", "max_attempts"],
  "message.discarded": ["reason"],
  "task.created": ["task_type", "wanted_name", "wanted_id", "capabilities", "retry_of"],
  "task.queued": ["reason"],
  "task.assigned": ["agent_name", "attempt"],
  "task.reported": ["status", "progress"],
  "task.released": ["reason", "attempt"],
  "task.refused": ["by", "what", "code"],
  "task.asked": ["message", "options"],
  "task.messaged": ["message"],
  "task.finished": ["status", "code", "error", "result"],
  "call.started": ["tool", "arguments"],
  "call.finished": ["tool", "status", "code", "error", "result"],
  "child.created": ["child_agent_name", "task_type"],
  "child.finished": ["child_id", "status"],
};

/** The part of a type that colours a row. */
export function family(type: string): "run" | "message" | "tool" | "people" | "plan" | "other" {
  const head = type.slice(0, type.indexOf("."));
  switch (head) {
    case "run":
    case "session":
    case "task":
      return "run";
    case "message":
    case "reasoning":
      return "message";
    case "tool":
    case "call":
      return "tool";
    case "input":
      return "people";
    case "plan":
    case "step":
    case "child":
      return "plan";
  }
  return "other";
}

/** Whether an event fits a filter: words that its line has, and "type:" with the beginning of its type. */
export function fits(e: CanonicalEvent, filter: string): boolean {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => {
      if (word === "") return true;
      if (word.startsWith("type:")) return e.type.startsWith(word.slice(5));
      return e.type.includes(word) || line(e).toLowerCase().includes(word);
    });
}
