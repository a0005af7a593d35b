import type { Question, Reply } from "@waggle-dev/client";
import { useState } from "react";

/** The arguments that people have written, or what is wrong with them. */
function read(text: string): { args?: Record<string, unknown>; problem?: string } {
  try {
    const args: unknown = JSON.parse(text);
    if (typeof args === "object" && args !== null && !Array.isArray(args)) return { args: args as Record<string, unknown> };
    return { problem: "Write the arguments as an object: { … }." };
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** One question: of a plan its steps, which may be dropped and renamed; of a tool its call, which may get other arguments. */
export function Approval({ question, onReply }: { question: Question; onReply: (reply: Reply) => void }) {
  const [proposed] = useState(() => ("steps" in question.data && question.data.steps) || []);
  const [steps, setSteps] = useState(proposed);
  const [feedback, setFeedback] = useState("");
  const changed = steps !== proposed;
  const why = feedback ? { feedback } : {};
  const args = "arguments" in question.data ? question.data.arguments : undefined;
  const changeable = "parameters" in question.data && question.data.parameters !== undefined;
  const call = JSON.stringify(args ?? {}, null, 2);
  const [text, setText] = useState<string>(); // undefined: the call stays as it is
  const edited = text === undefined ? {} : read(text);
  const other = edited.args && text !== call ? { arguments: edited.args } : {};

  return (
    <section className="question">
      <p>{question.text}</p>
      {args !== undefined && text === undefined && <pre>{call}</pre>}
      {text !== undefined && (
        <textarea aria-label="Arguments" rows={5} spellCheck={false} value={text} onChange={(e) => setText(e.target.value)} />
      )}
      {edited.problem && <p role="alert">{edited.problem}</p>}
      {steps.length > 0 && (
        <ol>
          {steps.map((step) => (
            <li key={step.id}>
              <input
                aria-label="Title of the step"
                value={step.title}
                onChange={(e) => setSteps(steps.map((s) => (s.id === step.id ? { ...s, title: e.target.value } : s)))}
              />
              <button type="button" disabled={steps.length === 1} onClick={() => setSteps(steps.filter((s) => s.id !== step.id))}>
                Drop
              </button>
            </li>
          ))}
        </ol>
      )}
      <div className="reply">
        <button
          type="button"
          className="main"
          disabled={edited.problem !== undefined}
          onClick={() => onReply({ approved: true, ...why, ...(changed ? { steps } : {}), ...other })}
        >
          {changed ? "Carry the changed plan out" : "Yes"}
        </button>
        <button type="button" onClick={() => onReply({ approved: false, ...why })}>
          No
        </button>
        {changeable && (
          <button type="button" onClick={() => setText(text === undefined ? call : undefined)}>
            {text === undefined ? "Edit" : "As it was"}
          </button>
        )}
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}
