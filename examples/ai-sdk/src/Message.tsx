import { originOf, questions, type WaggleUIMessage } from "@waggle-dev/ai-sdk";
import { type DynamicToolUIPart, isDynamicToolUIPart } from "ai";
import { useState } from "react";

type Part = WaggleUIMessage["parts"][number];
type DataOf<T extends Part["type"]> = Extract<Part, { type: T; data: unknown }>["data"];

interface Props {
  message: WaggleUIMessage;
  approve: (id: string, approved: boolean) => void;
  answer: (toolCallId: string, output: unknown) => void;
}

const marks = { pending: "○", running: "◐", completed: "●", failed: "✕", cancelled: "–" };

export function Message({ message, approve, answer }: Props) {
  const steps = new Map(message.parts.flatMap((p) => (p.type === "data-step" ? [[p.data.stepId, p.data] as const] : [])));
  const said = (stepId: string) =>
    message.parts.flatMap((p) => (p.type === "reasoning" && originOf(p).stepId === stepId && !originOf(p).discarded ? [p.text] : []));
  return message.parts.map((part, i) => {
    const key = `${message.id}-${i}`;
    if (originOf(part).discarded) return null;
    if (part.type === "text") {
      return (
        <section key={key} className={message.role === "user" ? "user" : "answer"}>
          {part.text}
        </section>
      );
    }
    if (part.type === "reasoning" && !originOf(part).stepId) {
      return (
        <details key={key} className="tool">
          <summary>{part.state === "streaming" ? "Thinking" : "Thought"}</summary>
          {part.text}
        </details>
      );
    }
    if (part.type === "data-plan") return <Plan key={key} plan={part.data} steps={steps} said={said} />;
    if (isDynamicToolUIPart(part)) return <Tool key={key} part={part} approve={approve} answer={answer} />;
    return null;
  });
}

interface PlanProps {
  plan: DataOf<"data-plan">;
  steps: Map<string, DataOf<"data-step">>;
  /** What was said at a step. */
  said: (stepId: string) => string[];
}

function Plan({ plan, steps, said }: PlanProps) {
  return (
    <section className="plan">
      <h2>{plan.summary || "Plan"}</h2>
      <ol>
        {plan.steps.map((s, i) => {
          const state = steps.get(s.id);
          const status = state?.status ?? "pending";
          const text = state?.output || state?.message || said(s.id).join("\n\n");
          return (
            <li key={s.id} className="step" data-status={status}>
              <span title={status}>{marks[status]}</span>
              <div>
                {i + 1}. {s.title}
                {text && <p>{text}</p>}
              </div>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Tool({ part, approve, answer }: Omit<Props, "message"> & { part: DynamicToolUIPart }) {
  const [text, setText] = useState("");
  if (part.state === "approval-requested") {
    const plan = part.toolName === questions.plan;
    return (
      <section className="question">
        <p>{plan ? "Carry this plan out?" : `May ${part.toolName} be called?`}</p>
        {!plan && <pre>{JSON.stringify(part.input, null, 2)}</pre>}
        <div className="reply">
          <button type="button" className="main" onClick={() => approve(part.approval.id, true)}>
            Yes
          </button>
          <button type="button" onClick={() => approve(part.approval.id, false)}>
            No
          </button>
        </div>
      </section>
    );
  }
  if (part.toolName === questions.answer && part.state === "input-available") {
    return (
      <form
        className="question"
        onSubmit={(e) => {
          e.preventDefault();
          answer(part.toolCallId, text);
        }}
      >
        <p>{(part.input as { question: string }).question}</p>
        <input aria-label="Answer" value={text} onChange={(e) => setText(e.target.value)} />
        <button type="submit" className="main">
          Answer
        </button>
      </form>
    );
  }
  if (part.toolName === questions.plan) return part.state === "output-denied" ? <p className="tool">The plan was refused.</p> : null;
  return (
    <details className="tool" data-state={part.state}>
      <summary>
        {part.toolName} {part.state === "output-denied" ? "was refused" : part.state === "output-error" ? "has failed" : ""}
      </summary>
      <pre>{JSON.stringify(part.input, null, 2)}</pre>
      {part.state === "output-available" && <pre>{String(part.output)}</pre>}
      {part.state === "output-error" && <pre>{part.errorText}</pre>}
    </details>
  );
}
