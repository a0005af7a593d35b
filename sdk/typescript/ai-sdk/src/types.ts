import type { UIMessage, UITools } from "ai";

/** The metadata of an answer. */
export interface WaggleMetadata {
  /** When the run began. */
  createdAt?: string;
  /** How it ended: `success`, `partial_success`, `rejected`, `timeout`, `cancelled`, `failed`. */
  outcome?: string;
  /** Why the answer is not complete: `length`, `filtered`, `refused`, `other`. */
  stopReason?: string;
  /** The tokens of its models. */
  usage?: {
    inputTokens: number;
    outputTokens: number;
    totalTokens: number;
    reasoningTokens?: number;
    cachedInputTokens?: number;
  };
  /** Why the run failed. */
  error?: { code: string; message: string };
  /** Up to which stretch of the run the message is complete; the server reads it when the message comes back with answers. */
  stretch?: number;
}

/** A step of a plan. */
export interface WaggleStep {
  id: string;
  title: string;
  description?: string;
  /** The steps that have to be completed before. */
  dependencies?: string[];
}

/** The data parts of answers, by their names without `data-`. */
export type WaggleData = {
  /** The plan of the run. Its steps have a part `data-step` each, with the same id. */
  plan: { planId: string; summary?: string; steps: WaggleStep[] };
  /** How a step stands. */
  step: {
    stepId: string;
    title?: string;
    status: "pending" | "running" | "completed" | "failed" | "cancelled";
    output?: string;
    /** Why it has no output. */
    message?: string;
  };
  /** The to-do list of the agent. */
  todos: { todos: { todo_id: string; description: string; status: "pending" | "in_progress" | "done" }[] };
  /** A file that the agent has made. `url` is relative to the gateway, and absent if the file cannot be fetched. */
  artifact: { artifactId: string; path: string; type: string; url?: string; size?: number; toolCallId?: string };
  /** Failed work will be repeated. Only `onData` gets it. */
  retry: { code: string; message: string; retryAfterMs: number; attempt: number; maxAttempts: number; stepId?: string };
  /** Something that people should know. Only `onData` gets it. */
  notice: { level: "info" | "warning" | "error"; code: string; message: string };
  /** The message waits for its turn. Only `onData` gets it. */
  queued: { runId: string; ahead: number };
};

/** A message of a chat in Waggle: `useChat<WaggleUIMessage>()`. With tools of the page, name their types. */
export type WaggleUIMessage<TOOLS extends UITools = UITools> = UIMessage<WaggleMetadata, WaggleData, TOOLS>;

/** The names of tool parts that stand for questions about no tool: all are dynamic tools. */
export const questions = {
  /** Takes an approval. Its input is the plan, as in `data-plan`. */
  plan: "confirm_plan",
  /** Takes an approval. Its input is the use of the run's budget. */
  budget: "raise_budget",
  /** Takes an output: `addToolOutput({ tool: "answer", toolCallId, output })`. Its input is `{ question, agent?, options? }`. */
  answer: "answer",
} as const;

/** The step of a plan that a text or reasoning belongs to, and whether the model has begun it anew. */
export interface WaggleOrigin {
  stepId?: string;
  /** The text does not count: hide it. `ai` 7 removes most of these parts itself. */
  discarded?: boolean;
}

/** What Waggle says about a text or reasoning. */
export function originOf(part: { type: string }): WaggleOrigin {
  const { providerMetadata } = part as { providerMetadata?: { waggle?: WaggleOrigin } };
  return providerMetadata?.waggle ?? {};
}
