import { WaggleChatTransport, type WaggleUIMessage } from "@waggle-dev/ai-sdk";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./Chat.js";
import "./style.css";

const query = new URLSearchParams(location.search);
const url = query.get("url") ?? "http://127.0.0.1:9000";
const id = query.get("thread") ?? crypto.randomUUID();
query.set("thread", id); // a reload shows the same chat
history.replaceState(null, "", `?${query}`);

const transport = new WaggleChatTransport<WaggleUIMessage>({ url, body: { mode: "plan", confirmPlan: true } });
const root = createRoot(document.getElementById("root") as HTMLElement);
transport.history(id).then(
  (messages) =>
    root.render(
      <StrictMode>
        <Chat id={id} messages={messages} transport={transport} />
      </StrictMode>,
    ),
  (error) => root.render(<p role="alert">{error.message}</p>),
);
