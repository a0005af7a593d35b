import { render } from "preact";
import "./style/main.css";
import { effect } from "@preact/signals";
import { begin, wantedLanguage } from "./app.ts";
import { lookForPlug } from "./model/plug.ts";
import { returned } from "./model/signin.ts";
import { callback } from "./route.ts";
import { Shell } from "./shell.tsx";
import { speak } from "./words.ts";

const back = location.pathname === callback;
if (!back) void begin();
void lookForPlug();
// Evaluating the code is a long task already: the page is rendered in the next one.
await Promise.all([speak(wantedLanguage()), new Promise((go) => setTimeout(go))]);
if (back) void returned();
effect(() => void speak(wantedLanguage()));
render(<Shell />, document.getElementById("app") as HTMLElement);
