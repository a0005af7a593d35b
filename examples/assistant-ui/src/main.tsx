import { AssistantRuntimeProvider, type ThreadHistoryAdapter } from "@assistant-ui/react";
import { useAgUiRuntime } from "@assistant-ui/react-ag-ui";
import { useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { PageAgent } from "./agent.js";
import { rejoin, useFollow } from "./follow.js";
import { Thread } from "./Thread.js";
import "./style.css";

const query = new URLSearchParams(location.search);
const given = query.get("thread");
const threadId = given ?? crypto.randomUUID();
query.set("thread", threadId); // a reload shows the same thread
history.replaceState(null, "", `?${query}`);

// The history is Waggle's: a thread that the page has shown before is joined as it is, with the run that is on.
const log: ThreadHistoryAdapter = {
  load: async () => ({ messages: [], unstable_resume: given !== null }),
  append: async () => {},
};

function App() {
  const agent = useMemo(() => new PageAgent({ url: query.get("url") ?? "http://127.0.0.1:9000", threadId }), []);
  const [problem, setProblem] = useState("");
  const runtime = useAgUiRuntime({ agent: agent as never, adapters: { history: log }, onError: (e) => setProblem(e.message) });
  useFollow(agent, runtime); // what other windows do
  useEffect(() => agent.subscribe({ onRunStartedEvent: () => setProblem("") }).unsubscribe, [agent]);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <Thread agent={agent} problem={problem} onProblem={(e) => setProblem(e.message)} onRefused={() => rejoin(agent, runtime)} />
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(<App />);
