import type { Question } from "@waggle-dev/client";
import type { ViewItem } from "@waggle-dev/client/view";
import { useSession } from "@waggle-dev/react";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Approval } from "./Approval.js";

type Of<K extends ViewItem["kind"]> = Extract<ViewItem, { kind: K }>;

const marks = { waiting: "○", running: "◐", completed: "●", failed: "✕", cancelled: "–" } as const;

function Plan({ plan, onRestart }: { plan: Of<"plan">; onRestart: (step: string) => void }) {
  return (
    <section className="plan" data-status={plan.status}>
      <h2>
        Plan <small>{plan.summary}</small>
      </h2>
      <ol>
        {plan.steps.map((step) => (
          <li key={step.id} className="step" data-status={step.status}>
            <span aria-hidden="true">{marks[step.status]}</span>
            <div>
              <b>{step.title}</b> <small>{step.status}</small>
              {step.text && <p>{step.text}</p>}
            </div>
            {plan.status === "done" && step.status !== "completed" && (
              <button type="button" onClick={() => onRestart(step.id)}>
                Try again
              </button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Item({ item, onRestart }: { item: ViewItem; onRestart: (step: string) => void }) {
  if (item.kind === "plan") return <Plan plan={item} onRestart={onRestart} />;
  if (item.kind === "user") return <p className="user">{item.text}</p>;
  if (item.kind === "notice") return <p className="tool">{item.text}</p>;
  if (item.kind === "end") return <p className="end">{item.text}</p>;
  if (item.kind === "decision")
    return (
      <p className="tool">
        {item.name || item.scope}: {item.code} {item.by && `by ${item.by}`} {item.text}
      </p>
    );
  if (item.step !== undefined) return null; // the plan shows what steps have made
  if (item.kind === "retry") return <p className="tool">{item.text} Asking again.</p>;
  if (item.kind === "answer")
    return (
      <>
        {item.reasoning && (
          <details className="tool">
            <summary>{item.text || item.done ? "Reasoning" : "Thinking…"}</summary>
            {item.reasoning}
          </details>
        )}
        {item.text && <p className="answer">{item.text}</p>}
        {item.stop && <p className="tool">Incomplete: {item.stop.reason}</p>}
      </>
    );
  return (
    <p className="tool">
      used <code>{item.name}</code> {item.status !== "completed" && item.status}
    </p>
  );
}

/** A conversation: messages, plans with their steps, and what people are asked. */
export function Chat({ id }: { id: string }) {
  const { view, connection, send, answer, cancel, session } = useSession(id);
  const [text, setText] = useState("");
  const [planned, setPlanned] = useState(true);
  const [problem, setProblem] = useState("");
  const end = useRef<HTMLDivElement>(null);
  const told = (p: Promise<unknown>) => void p.then(() => setProblem("")).catch((e: Error) => setProblem(e.message));

  useEffect(() => {
    if (view.seq > 0 || problem) end.current?.scrollIntoView({ block: "end" });
  }, [view.seq, problem]);

  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (!text.trim()) return;
    send(text, planned ? { mode: "plan", confirmPlan: true } : {})
      .accepted()
      .then(() => setProblem(""))
      .catch((error: Error) => setProblem(error.message));
    setText("");
  };

  return (
    <>
      <header>
        <h1>Waggle plans</h1>
        <span role="status">{connection.connected || view.seq === 0 ? "" : "reconnecting …"}</span>
      </header>
      <main>
        {view.items.map((item) => (
          <Item key={`${item.kind} ${item.id}`} item={item} onRestart={(step) => told(session.restartStep(step))} />
        ))}
        {view.questions.map((question: Question) => (
          <Approval key={question.id} question={question} onReply={(reply) => told(answer(question, reply))} />
        ))}
        {problem && <p className="end">{problem}</p>}
        <div ref={end} />
      </main>
      <form onSubmit={submit}>
        <input
          aria-label="Message"
          placeholder="Ask for something with several parts"
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
        <label>
          <input type="checkbox" checked={planned} onChange={(e) => setPlanned(e.target.checked)} /> plan
        </label>
        <button type="submit" className="main">
          Send
        </button>
        {view.active.length > 0 && (
          <button type="button" onClick={() => told(cancel())}>
            Stop
          </button>
        )}
      </form>
    </>
  );
}
