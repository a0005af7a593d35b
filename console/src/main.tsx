import { render } from "preact";
import "./style/main.css";
import { effect } from "@preact/signals";
import { begin, wantedLanguage } from "./app.ts";
import { callback, returned } from "./model/signin.ts";
import { Shell } from "./shell.tsx";
import { speak } from "./words.ts";

const back = location.pathname === callback;
if (!back) void begin();
await speak(wantedLanguage());
if (back) void returned();
effect(() => void speak(wantedLanguage()));
render(<Shell />, document.getElementById("app") as HTMLElement);
