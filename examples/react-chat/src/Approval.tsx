import type { Question, Reply } from "@waggle-dev/client";
import { useState } from "react";

/** One question: of a plan its steps, which may be dropped and renamed; of a tool its call. */
export function Approval({ question, onReply }: { question: Question; onReply: (reply: Reply) => void }) {
  const [proposed] = useState(() => ("steps" in question.data && question.data.steps) || []);
  const [steps, setSteps] = useState(proposed);
  const [feedback, setFeedback] = useState("");
  const changed = steps !== proposed;
  const why = feedback ? { feedback } : {};
  const args = "arguments" in question.data ? question.data.arguments : undefined;

  return (
    <section className="question">
      <p>{question.text}</p>
      {args !== undefined && <pre>{JSON.stringify(args, null, 1)}</pre>}
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
        <button type="button" className="main" onClick={() => onReply({ approved: true, ...why, ...(changed ? { steps } : {}) })}>
          {changed ? "Carry the changed plan out" : "Yes"}
        </button>
        <button type="button" onClick={() => onReply({ approved: false, ...why })}>
          No
        </button>
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}
