/**
 * What a page with CopilotKit's chat needs to show all of a thread of Waggle: approvals, failures, and what other windows do.
 *
 * @packageDocumentation
 */
import { HttpAgent } from "@ag-ui/client";
import { useAgent, useCopilotKit, useInterrupt } from "@copilotkit/react-core/v2";
import { type ReactElement, useEffect, useState } from "react";
import { Approval, type ApprovalProps, type ApprovalReply } from "./approval.js";
import { argumentsOf } from "./edit.js";
import { followHeader } from "./follow.js";

export { Approval, type ApprovalProps, type ApprovalReply } from "./approval.js";
export type { CallArguments } from "./edit.js";

/** Shows the open questions in the chat, each as a card with an answer of its own: steps side by side ask side by side. */
export function WaggleApprovals(o: { agentId?: string; className?: string; card?: (p: ApprovalProps) => ReactElement }): null {
  const of = o.agentId === undefined ? {} : { agentId: o.agentId };
  const { agent } = useAgent(of);
  const answers = useAnswers(of);
  useInterrupt({
    ...of,
    render: ({ interrupts, resolve }) => (
      <>
        {interrupts.map((one) => (
          <Asked
            key={`${one.id} ${answers.times}`} // a refused one is asked again
            card={o.card ?? Approval}
            className={o.className}
            interrupt={one}
            before={() => answers.refused.get(one.id)}
            args={() => argumentsOf(one, agent.messages as Parameters<typeof argumentsOf>[1])}
            answer={(reply) => {
              answers.give(one.id, reply);
              void resolve(reply, one.id);
            }}
          />
        ))}
      </>
    ),
  });
  return null;
}

interface AskedProps extends Pick<ApprovalProps, "interrupt" | "answer" | "className"> {
  card: (p: ApprovalProps) => ReactElement;
  before: () => Refusal | undefined;
  args: () => ApprovalProps["args"];
}

/** A question with what is known when it is shown: CopilotKit shows an element again that was made before. */
function Asked({ card: Card, before, args, ...rest }: AskedProps): ReactElement {
  const [now] = useState(() => ({ args: before()?.reply.editedArgs ?? args(), problem: before()?.problem }));
  return <Card {...rest} {...now} />;
}

/** An answer that the server has refused, and why. */
interface Refusal {
  reply: ApprovalReply;
  problem: string;
}

/** What people have answered, and what the server has refused of it. */
class Answers {
  /** By the ids of their questions. */
  refused: ReadonlyMap<string, Refusal> = new Map();
  /** How often it has refused any. */
  times = 0;
  private given = new Map<string, ApprovalReply>();
  private taken = true;

  give(id: string, reply: ApprovalReply): void {
    if (this.taken) this.given = new Map();
    this.taken = false;
    this.given.set(id, reply);
    this.refused = new Map([...this.refused].filter(([one]) => one !== id));
  }

  take(): void {
    this.taken = true;
  }

  /** The server has refused the answer to one question, or the request with all of them. Returns whether there was one. */
  refuse(problem: string, id?: string): boolean {
    if (id === undefined && this.taken) return false;
    const edited = [...this.given].filter(([, reply]) => reply.editedArgs !== undefined);
    const all = edited.length > 0 ? edited : [...this.given];
    const those = id === undefined ? all : all.filter(([one]) => one === id);
    this.times++;
    this.refused = new Map(those.map(([one, reply]) => [one, { reply, problem }]));
    this.taken = true;
    return true;
  }
}

/** The answers that are given. The questions of a request that the server refuses are asked again. */
function useAnswers(o: { agentId?: string }): Answers {
  const { copilotkit } = useCopilotKit();
  const { agent } = useAgent(o);
  const [answers] = useState(() => new Answers());
  useEffect(() => {
    const refuse = (problem: string) => {
      if (!answers.refuse(problem)) return;
      setTimeout(() => {
        agent.pendingInterrupts = [];
        void copilotkit.connectAgent({ agent });
      }, 0); // once it is not running any more
    };
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: () => answers.take(),
      onCustomEvent: ({ event }) => {
        if (event.name !== "waggle.answer_refused") return;
        const { interruptId, message } = event.value as { interruptId?: string; message?: string };
        answers.refuse(message ?? "The answer was refused.", interruptId ?? "");
      },
      onRunErrorEvent: ({ event }) => refuse(event.message),
      onRunFailed: ({ error }) => refuse(error.message),
    });
    return unsubscribe;
  }, [agent, answers, copilotkit]);
  return answers;
}

/** Why the last run has failed (`problem`), and what is tried again meanwhile (`retry`); empty texts: nothing. */
export function useRunState(o: { agentId?: string } = {}): { problem: string; retry: string } {
  const { agent } = useAgent(o);
  const [state, setState] = useState({ problem: "", retry: "" });
  useEffect(() => {
    const quiet = () => setState((s) => (s.retry === "" ? s : { ...s, retry: "" }));
    const fails = (problem: string) => setState({ problem, retry: "" });
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: () => setState({ problem: "", retry: "" }),
      onRunErrorEvent: ({ event }) => fails(event.message),
      onRunFailed: ({ error }) => {
        if (error.name !== "AbortError") fails(error.message);
      },
      onRunFinishedEvent: quiet,
      onTextMessageStartEvent: quiet,
      onCustomEvent: ({ event }) => {
        if (event.name !== "waggle.retry") return;
        const { message } = event.value as { message?: string };
        setState((s) => ({ ...s, retry: message ?? "It is tried again." }));
      },
    });
    return unsubscribe;
  }, [agent]);
  return state;
}

/** Shows the runs that others begin in the thread, in another window or elsewhere. The runtime has a `WaggleRunner`. */
export function useFollow({ threadId, agentId }: { threadId: string; agentId?: string }): void {
  const { copilotkit } = useCopilotKit();
  const { agent, isReady } = useAgent(agentId === undefined ? {} : { agentId });
  const { runtimeUrl } = copilotkit;
  useEffect(() => {
    if (!isReady || !runtimeUrl) return undefined;
    const known = new Set<string>();
    let pending: string | undefined;
    const show = (runId: string) => {
      pending = agent.isRunning ? runId : undefined;
      if (pending !== undefined || [...known].some((id) => (id.endsWith(".") ? runId.startsWith(id) : runId === id))) return;
      agent.pendingInterrupts = []; // another run has begun: they are answered
      void copilotkit.connectAgent({ agent });
    };
    const url = `${runtimeUrl}/agent/${encodeURIComponent(agent.agentId ?? "default")}/connect`;
    const reading = follow({ url, headers: () => copilotkit.headers, threadId }, show);
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: ({ event, input }) => {
        const [answer] = (input as { resume?: { interruptId: string }[] }).resume ?? [];
        known.add(answer ? `${event.runId}.${answer.interruptId}.` : event.runId); // how its id at the server begins
        reading.now();
      },
      onRunFinalized: () => {
        if (pending !== undefined) setTimeout(show, 0, pending); // once it is not running any more
      },
    });
    return () => {
      reading.stop();
      unsubscribe();
    };
  }, [agent, isReady, copilotkit, runtimeUrl, threadId]);
}

/** Reads a thread until it is stopped, and tells the ids of the runs but that with which the page begins. */
function follow(
  o: { url: string; headers: () => Readonly<Record<string, string>>; threadId: string },
  began: (runId: string) => void,
): { now: () => void; stop: () => void } {
  const pauses = { first: 1000, most: 15_000 };
  let pause = pauses.first;
  let first = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let reader: HttpAgent | undefined;
  let over = false;
  const again = () => {
    if (over) return;
    first = false; // nobody had written to the thread: the first run is another's, too
    reader = undefined;
    timer = setTimeout(read, pause);
    pause = Math.min(2 * pause, pauses.most);
  };
  const read = () => {
    clearTimeout(timer);
    reader = new HttpAgent({ url: o.url, headers: { ...o.headers(), [followHeader]: "1" } });
    const input = { threadId: o.threadId, runId: "follow", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
    reader.run(input).subscribe({
      next: (e) => {
        pause = pauses.first;
        if (e.type !== "RUN_STARTED" || over) return;
        if (!first) began((e as unknown as { runId: string }).runId);
        first = false;
      },
      error: again,
      complete: again,
    });
  };
  read();
  return {
    /** Ends a pause: there is something to read. */
    now: () => void (reader ?? read()),
    stop: () => {
      over = true;
      clearTimeout(timer);
      reader?.abortRun();
    },
  };
}
