import { useChat } from "@ai-sdk/react";
import type { WaggleChatTransport, WaggleUIMessage } from "@waggle-dev/ai-sdk";
import {
  lastAssistantMessageIsCompleteWithToolCalls as allAnswered,
  lastAssistantMessageIsCompleteWithApprovalResponses as allApproved,
} from "ai";
import { useEffect, useRef, useState } from "react";
import { Message } from "./Message.js";

interface Props {
  id: string;
  messages: WaggleUIMessage[];
  transport: WaggleChatTransport<WaggleUIMessage>;
}

export function Chat(props: Props) {
  const [note, setNote] = useState("");
  const chat = useChat<WaggleUIMessage>({
    ...props,
    resume: true,
    sendAutomaticallyWhen: (o) => allApproved(o) || allAnswered(o),
    onData: (part) => {
      if (part.type === "data-retry" || part.type === "data-notice") setNote(part.data.message);
    },
    onFinish: () => setNote(""),
  });
  const [text, setText] = useState("");
  const busy = chat.status === "submitted" || chat.status === "streaming";
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chat.messages.length > 0 || chat.error) end.current?.scrollIntoView();
  }, [chat.messages, chat.error]);
  return (
    <>
      <header>
        <h1>Waggle with useChat</h1>
        <small role="status">{note || (busy ? "at work" : "")}</small>
      </header>
      <main data-status={chat.status}>
        {chat.messages.map((m) => (
          <Message
            key={m.id}
            message={m}
            approve={(id, approved) => chat.addToolApprovalResponse({ id, approved })}
            answer={(toolCallId, output) => chat.addToolOutput({ tool: "answer", toolCallId, output } as never)}
          />
        ))}
        {chat.error && (
          <section className="end" role="alert">
            {chat.error.message}
          </section>
        )}
        <div ref={end} />
      </main>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (text.trim() === "") return;
          void chat.sendMessage({ text });
          setText("");
        }}
      >
        <input
          aria-label="Message"
          placeholder="which files are in the workspace, and what does notes.md say?"
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
        {busy ? (
          <button type="button" onClick={() => chat.stop()}>
            Stop
          </button>
        ) : (
          <button type="submit" className="main">
            Send
          </button>
        )}
      </form>
    </>
  );
}
