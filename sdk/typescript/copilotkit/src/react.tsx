/**
 * What a page with CopilotKit's chat needs to show all of a thread of Waggle: approvals, failures, and what other windows do.
 *
 * @packageDocumentation
 */
import { HttpAgent } from "@ag-ui/client";
import { type InterruptRenderProps, useAgent, useCopilotKit, useInterrupt } from "@copilotkit/react-core/v2";
import { type ReactElement, useEffect, useState } from "react";
import { followHeader } from "./follow.js";

/** One question: of a plan, of a tool call, of a budget or of an agent. */
export interface ApprovalProps {
  interrupt: InterruptRenderProps["interrupt"] & object;
  /** Gives the answer. Once all open questions have theirs, the run goes on. */
  answer: (reply: { approved: boolean; feedback?: string }) => void;
  className?: string | undefined;
}

/** A question with yes, no and the reason. */
export function Approval({ interrupt, answer, className = "waggle-approval" }: ApprovalProps): ReactElement {
  const [feedback, setFeedback] = useState("");
  const [given, setGiven] = useState(false); // the others are waited for
  const give = (approved: boolean) => {
    setGiven(true);
    answer({ approved, ...(feedback ? { feedback } : {}) });
  };
  return (
    <section className={className} data-given={given}>
      <p>{interrupt.message}</p>
      <div className="reply">
        <button type="button" className="main" disabled={given} onClick={() => give(true)}>
          Yes
        </button>
        <button type="button" disabled={given} onClick={() => give(false)}>
          No
        </button>
        <input aria-label="Why" placeholder="Why (for the model)" value={feedback} onChange={(e) => setFeedback(e.target.value)} />
      </div>
    </section>
  );
}

/** Shows the open questions in the chat, each as a card with an answer of its own: steps side by side ask side by side. */
export function WaggleApprovals(o: { agentId?: string; className?: string; card?: (p: ApprovalProps) => ReactElement }): null {
  const Card = o.card ?? Approval;
  useInterrupt({
    ...(o.agentId === undefined ? {} : { agentId: o.agentId }),
    render: ({ interrupts, resolve }) => (
      <>
        {interrupts.map((one) => (
          <Card key={one.id} className={o.className} interrupt={one} answer={(reply) => void resolve(reply, one.id)} />
        ))}
      </>
    ),
  });
  return null;
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
      if (pending !== undefined || known.has(runId)) return;
      agent.pendingInterrupts = []; // another run goes on: they are answered
      void copilotkit.connectAgent({ agent });
    };
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: ({ event }) => {
        known.add(event.runId);
      },
      onRunFinalized: () => {
        if (pending !== undefined) setTimeout(show, 0, pending); // once it is not running any more
      },
    });
    const url = `${runtimeUrl}/agent/${encodeURIComponent(agent.agentId ?? "default")}/connect`;
    const stop = follow({ url, headers: () => copilotkit.headers, threadId }, show);
    return () => {
      stop();
      unsubscribe();
    };
  }, [agent, isReady, copilotkit, runtimeUrl, threadId]);
}

/** Reads a thread until it is stopped, and tells the ids of the runs but that with which the thread begins. */
function follow(o: { url: string; headers: () => Readonly<Record<string, string>>; threadId: string }, began: (runId: string) => void) {
  const pauses = { first: 1000, most: 15_000 };
  let pause = pauses.first;
  let first = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let reader: HttpAgent | undefined;
  let over = false;
  const again = () => {
    if (over) return;
    timer = setTimeout(read, pause);
    pause = Math.min(2 * pause, pauses.most);
  };
  const read = () => {
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
  return () => {
    over = true;
    clearTimeout(timer);
    reader?.abortRun();
  };
}
