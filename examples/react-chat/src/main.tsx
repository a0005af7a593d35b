import { WaggleClient } from "@waggle-dev/client";
import { WaggleProvider } from "@waggle-dev/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./Chat.js";

const query = new URLSearchParams(location.search);
const client = new WaggleClient({ url: query.get("url") ?? "http://127.0.0.1:9000" });
const id = query.get("session") ?? client.session().id;
query.set("session", id); // a reload shows the same session
history.replaceState(null, "", `?${query}`);

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <WaggleProvider client={client}>
      <Chat id={id} />
    </WaggleProvider>
  </StrictMode>,
);
