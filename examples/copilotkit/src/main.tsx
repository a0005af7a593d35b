import { CopilotChat, CopilotKitProvider, useDefaultRenderTool } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { useFollow, useRunState, WaggleApprovals } from "@waggle-dev/copilotkit/react";
import { createRoot } from "react-dom/client";
import { z } from "zod";
import { Plan, planContent } from "./Plan.js";
import "./style.css";

const query = new URLSearchParams(location.search);
const thread = query.get("thread") ?? crypto.randomUUID();
query.set("thread", thread); // a reload shows the same thread
history.replaceState(null, "", `?${query}`);

// What Waggle shows of a run besides messages. What this page does not show (questions, to-dos, files) is passed over.
const activities = [
  { activityType: "waggle.plan", content: planContent, render: Plan },
  { activityType: "*", content: z.unknown(), render: () => null },
];

function Chat() {
  const { problem, retry } = useRunState();
  useFollow({ threadId: thread }); // what other windows do
  useDefaultRenderTool({
    render: ({ name, parameters, status, result }) => (
      <details className="tool">
        <summary>
          {status === "complete" ? "used" : "uses"}{" "}
          <code>
            {name} {JSON.stringify(parameters)}
          </code>
        </summary>
        {result && <pre>{result}</pre>}
      </details>
    ),
  });
  return (
    <>
      <WaggleApprovals className="question" />
      {problem && <p className="problem">{problem}</p>}
      {retry && <p className="problem">{retry} Asking again.</p>}
      <CopilotChat threadId={thread} labels={{ chatInputPlaceholder: "Ask for something with several parts" }} />
    </>
  );
}

// The properties are the forwardedProps of AG-UI.
createRoot(document.getElementById("root") as HTMLElement).render(
  <CopilotKitProvider
    runtimeUrl={query.get("runtime") ?? "/api/copilotkit"}
    properties={{ waggle: { mode: query.get("mode") ?? "plan", confirmPlan: true } }}
    renderActivityMessages={activities}
    enableInspector={false}
  >
    <header>
      <h1>Waggle with CopilotKit</h1>
      <a href={location.pathname}>New chat</a>
    </header>
    <main>
      <Chat />
    </main>
  </CopilotKitProvider>,
);
