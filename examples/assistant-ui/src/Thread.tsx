import { ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useSyncExternalStore } from "react";
import type { PageAgent, PlanContent } from "./agent.js";
import { Questions } from "./Questions.js";

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
export function Thread(o: { agent: PageAgent; problem: string; onProblem: (e: Error) => void; onRefused: () => void }) {
  const { agent, problem, onProblem, onRefused } = o;
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
        <Questions agent={agent} onRefused={onRefused} />
        {problem && <p className="end">{problem}</p>}
      </ThreadPrimitive.Viewport>
      <ComposerPrimitive.Root className="composer">
        <ComposerPrimitive.Input aria-label="Message" placeholder="Ask for something with several parts" rows={1} />
        <ThreadPrimitive.If running>
          <button type="button" onClick={() => void agent.stop().catch(onProblem)}>
            Stop
          </button>
        </ThreadPrimitive.If>
        <ComposerPrimitive.Send className="main">Send</ComposerPrimitive.Send>
      </ComposerPrimitive.Root>
    </ThreadPrimitive.Root>
  );
}
