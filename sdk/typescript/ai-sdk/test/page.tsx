// The page of the tests: useChat as its users write it, with the transport of this package or with the AI SDK's own.
import { Chat, useChat } from "@ai-sdk/react";
import { originOf, WaggleChatTransport, type WaggleUIMessage } from "@waggle-dev/ai-sdk";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const q = new URLSearchParams(location.search);
const url = q.get("url") ?? "";
const id = q.get("chat") ?? "chat";
const body = JSON.parse(q.get("body") ?? "{}");
const own = new WaggleChatTransport({ url, body });
const transport = q.has("stock") ? new DefaultChatTransport<WaggleUIMessage>({ api: `${url}/ai/chat`, body }) : own;

const chat = new Chat<WaggleUIMessage>({
  id,
  transport,
  messages: q.has("empty") ? [] : await own.history(id),
  sendAutomaticallyWhen: (o) => lastAssistantMessageIsCompleteWithApprovalResponses(o) || lastAssistantMessageIsCompleteWithToolCalls(o),
  onToolCall: ({ toolCall }) => {
    if (toolCall.dynamic || toolCall.toolName !== "paint") return;
    void chat.addToolOutput({ tool: "paint", toolCallId: toolCall.toolCallId, output: { painted: toolCall.input } } as never);
  },
});

function Part({ part }: { part: WaggleUIMessage["parts"][number] }) {
  if (originOf(part).discarded) return null;
  if (part.type === "text") return <p className="text">{part.text}</p>;
  if (part.type === "reasoning") return <i className="reasoning">{part.text}</i>;
  if (part.type === "data-step") return <b className="step">{`${part.data.title}: ${part.data.status}`}</b>;
  if (part.type === "data-plan") return <b className="plan">{part.data.steps.map((s) => s.title).join(", ")}</b>;
  if (part.type === "file") return <img alt="file" src={url + part.url} />;
  if (!("toolCallId" in part)) return null;
  const tool = part as Extract<typeof part, { type: "dynamic-tool" }>;
  const name = tool.type === "dynamic-tool" ? tool.toolName : (tool as { type: string }).type;
  return (
    <div className="tool" data-state={tool.state} data-name={name}>
      {name}
      <code>{JSON.stringify(tool.input)}</code>
      {tool.state === "output-available" && <pre>{typeof tool.output === "string" ? tool.output : JSON.stringify(tool.output)}</pre>}
      {tool.state === "output-error" && <pre>{tool.errorText}</pre>}
      {tool.state === "approval-requested" && (
        <>
          <button type="button" onClick={() => chat.addToolApprovalResponse({ id: tool.approval.id, approved: true })}>
            Yes
          </button>
          <button type="button" onClick={() => chat.addToolApprovalResponse({ id: tool.approval.id, approved: false, reason: "not now" })}>
            No
          </button>
        </>
      )}
    </div>
  );
}

function Page() {
  const { messages, sendMessage, status, error, stop, regenerate } = useChat({ chat, resume: !q.has("empty") });
  const [text, setText] = useState("");
  return (
    <>
      <main data-status={status}>
        {messages.map((m) => (
          <section key={m.id} className={m.role} data-id={m.id} data-outcome={m.metadata?.outcome}>
            {m.parts.map((p, i) => (
              <Part key={i} part={p} />
            ))}
          </section>
        ))}
        {error && <output className="error">{error.message}</output>}
      </main>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input value={text} onChange={(e) => setText(e.target.value)} />
        <button type="submit">Send</button>
        <button type="button" onClick={() => stop()}>
          Stop
        </button>
        <button type="button" onClick={() => regenerate()}>
          Again
        </button>
      </form>
    </>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
