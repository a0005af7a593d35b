import { useChat } from "@ai-sdk/react";
import { originOf, type WaggleChatTransport, type WaggleUIMessage } from "@waggle-dev/ai-sdk";
import { lastAssistantMessageIsCompleteWithApprovalResponses as allApproved, isDynamicToolUIPart } from "ai";
import { useEffect, useRef, useState } from "react";

interface Props {
  id: string;
  messages: WaggleUIMessage[];
  transport: WaggleChatTransport<WaggleUIMessage>;
}

export function Chat(props: Props) {
  // resume: an answer that was in progress when the page was closed continues where it stopped.
  const chat = useChat<WaggleUIMessage>({ ...props, resume: true, sendAutomaticallyWhen: (o) => allApproved(o) });
  const [text, setText] = useState("");
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chat.messages.length > 0) end.current?.scrollIntoView();
  }, [chat.messages]);
  const busy = chat.status === "submitted" || chat.status === "streaming";
  return (
    <>
      <main>
        {chat.messages.flatMap((m) =>
          m.parts.map((part, i) => {
            const key = `${m.id}-${i}`;
            if (originOf(part).discarded) return null; // of an attempt that was given up
            if (part.type === "text") {
              return (
                <p key={key} className={m.role}>
                  {part.text}
                </p>
              );
            }
            if (!isDynamicToolUIPart(part)) return null;
            return (
              <section key={key} className="tool" data-state={part.state}>
                <code>
                  {part.toolName} {JSON.stringify(part.input)}
                </code>
                {part.state === "approval-requested" && (
                  <div>
                    <button type="button" onClick={() => chat.addToolApprovalResponse({ id: part.approval.id, approved: true })}>
                      Yes
                    </button>
                    <button type="button" onClick={() => chat.addToolApprovalResponse({ id: part.approval.id, approved: false })}>
                      No
                    </button>
                  </div>
                )}
                {part.state === "output-available" && <pre>{String(part.output)}</pre>}
                {part.state === "output-error" && <pre>{part.errorText}</pre>}
              </section>
            );
          }),
        )}
        {chat.error && <p role="alert">{chat.error.message}</p>}
        <div ref={end} />
      </main>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (text.trim() === "" || busy) return;
          void chat.sendMessage({ text });
          setText("");
        }}
      >
        <input aria-label="Message" placeholder="what does notes.md say?" value={text} onChange={(e) => setText(e.target.value)} />
        {busy ? (
          <button type="button" onClick={() => chat.stop()}>
            Stop
          </button>
        ) : (
          <button type="submit">Send</button>
        )}
      </form>
    </>
  );
}
