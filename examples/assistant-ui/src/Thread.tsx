import { ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useAgUiInterrupts, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
import { useState, useSyncExternalStore } from "react";
import type { PageAgent, PlanContent } from "./agent.js";

const marks: Record<string, string> = { pending: "○", running: "◐", completed: "●", failed: "✕", cancelled: "–" };

function Plan({ plan }: { plan: PlanContent }) {
  return (
    <section className="plan">
      <h2>
        Plan <small>{plan.summary}</small>
      </h2>
      <ol>
        {plan.tasks.map((task) => (
          <li key={task.id} data-status={task.status}>
            <span aria-hidden="true">{marks[task.status] ?? "○"}</span> {task.title} <small>{task.status}</small>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** All open questions: assistant-ui answers them together. */
function Questions() {
  const open = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const [feedback, setFeedback] = useState("");
  if (open.length === 0) return null;
  const reply = (approved: boolean) => {
    const payload = { approved, ...(feedback ? { feedback } : {}) };
    setFeedback("");
    void submit(open.map(({ id }) => ({ interruptId: id, status: "resolved" as const, payload }))).catch(() => {}); // onError shows it
  };
  return (
    <section className="question">
      {open.map((question) => (
        <p key={question.id}>{question.message}</p>
      ))}
      <div className="reply">
        <button type="button" className="main" onClick={() => reply(true)}>
          Yes
        </button>
        <button type="button" onClick={() => reply(false)}>
          No
        </button>
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}

function UserMessage() {
  return (
    <MessagePrimitive.Root className="user">
      <MessagePrimitive.Parts />
    </MessagePrimitive.Root>
  );
}

function Tool({ toolName, argsText, result }: { toolName: string; argsText: string; result?: unknown }) {
  return (
    <details className="tool">
      <summary>
        {result === undefined ? "uses" : "used"}{" "}
        <code>
          {toolName} {argsText}
        </code>
      </summary>
      {result !== undefined && <pre>{typeof result === "string" ? result : JSON.stringify(result, null, 1)}</pre>}
    </details>
  );
}

function Thinking({ text }: { text: string }) {
  return (
    <details className="tool">
      <summary>planned</summary>
      <pre>{text}</pre>
    </details>
  );
}

function AssistantMessage() {
  return (
    <MessagePrimitive.Root className="answer">
      <MessagePrimitive.Parts components={{ tools: { Fallback: Tool }, Reasoning: Thinking }} />
    </MessagePrimitive.Root>
  );
}

/** A conversation: messages, the newest plan with its tasks, and what people are asked. */
export function Thread({ agent, problem }: { agent: PageAgent; problem: string }) {
  const plan = useSyncExternalStore(agent.watch, () => agent.plan);
  return (
    <ThreadPrimitive.Root className="thread">
      <header>
        <h1>Waggle with assistant-ui</h1>
        <a href={location.pathname}>New chat</a>
      </header>
      <ThreadPrimitive.Viewport className="main">
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage }} />
        {plan && <Plan plan={plan} />}
        <Questions />
        {problem && <p className="end">{problem}</p>}
      </ThreadPrimitive.Viewport>
      <ComposerPrimitive.Root className="composer">
        <ComposerPrimitive.Input aria-label="Message" placeholder="Ask for something with several parts" rows={1} />
        <ComposerPrimitive.Send className="main">Send</ComposerPrimitive.Send>
      </ComposerPrimitive.Root>
    </ThreadPrimitive.Root>
  );
}
