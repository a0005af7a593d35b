import { useAgUiInterrupts, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
import { useRef, useState } from "react";
import type { PageAgent } from "./agent.js";

type Interrupt = ReturnType<typeof useAgUiInterrupts>[number];
type Arguments = Record<string, unknown>;

interface Reply {
  approved: boolean;
  feedback?: string;
  editedArgs?: Arguments;
}

/** By the ids of their questions: those that the server has refused, and why. */
type Refused = ReadonlyMap<string, { reply: Reply; problem: string; times: number }>;

/** All open questions, each with an answer of its own: assistant-ui sends them together. After a refused one, they are to be asked again. */
export function Questions({ agent, onRefused }: { agent: PageAgent; onRefused: () => void }) {
  const open = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const replies = useRef(new Map<string, Reply>());
  const [refused, setRefused] = useState<Refused>(new Map());
  const refuse = (ids: Iterable<string>, given: ReadonlyMap<string, Reply>, problem: string) =>
    setRefused((before) => {
      const all = new Map(before);
      for (const id of ids) {
        const reply = given.get(id);
        if (reply) all.set(id, { reply, problem, times: (before.get(id)?.times ?? 0) + 1 });
      }
      return all;
    });
  const reply = (id: string, one: Reply) => {
    const given = replies.current.set(id, one);
    if (open.some((question) => !given.has(question.id))) return;
    replies.current = new Map();
    let taken = false;
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: () => {
        taken = true;
      },
      onCustomEvent: ({ event }) => {
        if (event.name !== "waggle.answer_refused") return;
        const { interruptId = "", message = "The answer was refused." } = event.value as { interruptId?: string; message?: string };
        refuse([interruptId], given, message);
      },
    });
    submit(open.map((q) => ({ interruptId: q.id, status: "resolved" as const, payload: given.get(q.id) })))
      .catch((error: Error) => {
        if (taken) return; // the run goes on, and onError shows what has failed
        refuse(given.keys(), given, error.message);
        onRefused();
      })
      .finally(unsubscribe);
  };
  return open.map((question) => (
    <Card
      key={`${question.id} ${refused.get(question.id)?.times ?? 0}`}
      question={question}
      agent={agent}
      refused={refused.get(question.id)}
      onReply={(one) => reply(question.id, one)}
    />
  ));
}

interface CardProps {
  question: Interrupt;
  agent: PageAgent;
  refused: { reply: Reply; problem: string } | undefined;
  onReply: (reply: Reply) => void;
}

function Card({ question, agent, refused, onReply }: CardProps) {
  const [args] = useState(() => argumentsOf(question, agent.messages));
  const proposed = JSON.stringify(args, null, 2);
  const [given, setGiven] = useState(false); // the others are waited for
  const [feedback, setFeedback] = useState("");
  const [text, setText] = useState(refused?.reply.editedArgs && JSON.stringify(refused.reply.editedArgs, null, 2)); // undefined: the call stays as it is
  const edited = text === undefined ? {} : read(text);
  const give = (approved: boolean) => {
    setGiven(true);
    const changed = approved && edited.args && text !== proposed ? { editedArgs: edited.args } : {};
    onReply({ approved, ...(feedback ? { feedback } : {}), ...changed });
  };
  const wrong = edited.problem ?? (given ? undefined : refused?.problem);
  return (
    <section className="question" data-given={given}>
      <p>{question.message}</p>
      {text !== undefined && (
        <textarea
          aria-label="Arguments"
          rows={5}
          spellCheck={false}
          disabled={given}
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
      )}
      {wrong && <p role="alert">{wrong}</p>}
      <div className="reply">
        <button type="button" className="main" disabled={given || edited.problem !== undefined} onClick={() => give(true)}>
          Yes
        </button>
        <button type="button" disabled={given} onClick={() => give(false)}>
          No
        </button>
        {args && (
          <button type="button" disabled={given} onClick={() => setText(text === undefined ? proposed : undefined)}>
            {text === undefined ? "Edit" : "As it was"}
          </button>
        )}
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}

/** The arguments of the call that a question is about; undefined: they cannot be changed. */
function argumentsOf(question: Interrupt, messages: PageAgent["messages"]): Arguments | undefined {
  const { properties } = (question.responseSchema ?? {}) as { properties?: Arguments };
  if (properties?.["editedArgs"] === undefined) return undefined;
  const calls = messages.flatMap((m) => (m.role === "assistant" && m.toolCalls) || []);
  const call = calls.findLast((c) => c.id === question.toolCallId);
  return call && read(call.function.arguments || "{}").args;
}

/** The arguments that people have written, or what is wrong with them. */
function read(text: string): { args?: Arguments; problem?: string } {
  try {
    const args: unknown = JSON.parse(text);
    if (typeof args === "object" && args !== null && !Array.isArray(args)) return { args: args as Arguments };
    return { problem: "Write the arguments as an object: { … }." };
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}
