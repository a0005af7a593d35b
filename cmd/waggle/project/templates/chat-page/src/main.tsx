import { WaggleChatTransport, type WaggleUIMessage } from "@waggle-dev/ai-sdk";
import { createRoot } from "react-dom/client";
import { Chat } from "./Chat.js";
import "./style.css";

// The address of the page names the chat, so that a reload shows the same one.
const query = new URLSearchParams(location.search);
const id = query.get("chat") ?? crypto.randomUUID();
query.set("chat", id);
history.replaceState(null, "", `?${query}`);

const transport = new WaggleChatTransport<WaggleUIMessage>({ url: location.origin });
const root = createRoot(document.getElementById("root") as HTMLElement);
transport.history(id).then(
  (messages) => root.render(<Chat id={id} messages={messages} transport={transport} />),
  (error) => root.render(<p role="alert">{error.message}</p>),
);
