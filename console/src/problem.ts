import { language, t, type Word } from "./words.ts";

/** Problems that have a name on the page: by their codes in the error catalogue. */
const named: Readonly<Record<string, Word>> = {
  MODEL_RATE_LIMITED: "problem.rate",
  MODEL_BUSY: "problem.busy",
  MODEL_FAILED: "problem.failed",
  MODEL_TIMEOUT: "problem.timeout",
  MODEL_CUT_OFF: "problem.cut",
  MODEL_BAD_REPLY: "problem.reply",
  MODEL_NO_ANSWER: "problem.empty",
  MODEL_REFUSED: "problem.refused",
  MODEL_KEY_REFUSED: "problem.key",
  MODEL_OUT_OF_QUOTA: "problem.quota",
  MODEL_NOT_FOUND: "problem.model",
  MODEL_INPUT_TOO_LONG: "problem.long",
  MODEL_CONTENT_REFUSED: "problem.content",
  BUDGET_EXCEEDED: "problem.budget",
  QUOTA_EXCEEDED: "problem.full",
  RATE_LIMITED: "problem.rate",
  UNREACHABLE: "problem.unreachable",
  NOT_FOUND: "problem.gone",
  INTERNAL: "problem.internal",
  TOOL_FAILED: "problem.tool",
  RUN_CANCELLED: "problem.stopped",
  AGENT_OFFLINE: "problem.offline",
  AGENT_LOST: "problem.lost",
  AGENT_NOT_FOUND: "problem.agent",
  TASK_TIMEOUT: "problem.late",
  TASK_EXECUTION_ERROR: "problem.work",
};

/** What a service of models does not want to answer: nothing is wrong with it. */
const refusals: ReadonlySet<string> = new Set([
  "MODEL_RATE_LIMITED",
  "MODEL_BUSY",
  "MODEL_REFUSED",
  "MODEL_KEY_REFUSED",
  "MODEL_OUT_OF_QUOTA",
  "MODEL_NOT_FOUND",
  "MODEL_INPUT_TOO_LONG",
  "MODEL_CONTENT_REFUSED",
]);

/** Whether a call of a model that failed with the code was refused. */
export const isRefusal = (code: string): boolean => refusals.has(code);

/** A problem in two or three words. A code without a name is said as words, in languages that share them. */
export function problem(code: string): string {
  const word = named[code];
  if (word) return t(word);
  if (!/^[A-Z][A-Z0-9_]*$/.test(code) || language() !== "en") return code;
  const text = code.toLowerCase().replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
