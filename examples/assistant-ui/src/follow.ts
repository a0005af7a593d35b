import type { AssistantRuntime } from "@assistant-ui/react";
import { useEffect } from "react";
import type { PageAgent } from "./agent.js";

const pauses = { first: 1000, most: 15_000 };

/** Shows the thread as it is at the server, with the run that is on. */
export function rejoin(agent: PageAgent, { thread }: AssistantRuntime): void {
  const { messages } = thread.getState();
  // What another window has answered is not asked any more, and nothing is joined while something is asked.
  agent.pendingInterrupts = [];
  thread.reset(messages.map((m) => (m.status?.type === "requires-action" ? { ...m, status: { type: "complete", reason: "unknown" } } : m)));
  agent.joinNext(() => thread.reset([]));
  thread.resumeRun({ parentId: messages.at(-1)?.id ?? null });
}

/** Shows the runs that others begin in the thread, in another window or elsewhere. */
export function useFollow(agent: PageAgent, runtime: AssistantRuntime): void {
  useEffect(() => {
    let newest: string | undefined;
    const show = () => {
      if (newest === undefined || runtime.thread.getState().isRunning) return;
      const known = agent.hasShown(newest);
      newest = undefined;
      if (!known) rejoin(agent, runtime);
    };
    const stop = follow(agent, (runId) => {
      newest = runId;
      show();
    });
    const unsubscribe = runtime.thread.subscribe(show); // once its own run is over
    return () => {
      stop();
      unsubscribe();
    };
  }, [agent, runtime]);
}

/** Tells the ids of all runs of the thread that begin, until it is stopped. */
function follow(agent: PageAgent, began: (runId: string) => void): () => void {
  let pause = pauses.first;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let reading: { unsubscribe(): void } | undefined;
  const again = () => {
    reading = undefined;
    timer = setTimeout(read, pause); // nobody has written to the thread yet
    pause = Math.min(2 * pause, pauses.most);
  };
  const read = () => {
    clearTimeout(timer);
    reading = agent.runs().subscribe({ next: began, error: again, complete: again });
  };
  read();
  const { unsubscribe } = agent.subscribe({ onRunStartedEvent: () => void (reading ?? read()) }); // now there is something to read
  return () => {
    unsubscribe();
    clearTimeout(timer);
    reading?.unsubscribe();
  };
}
