import { render } from "preact";
import "./style/main.css";
import { effect } from "@preact/signals";
import { begin, wantedLanguage } from "./app.ts";
import { Shell } from "./shell.tsx";
import { speak } from "./words.ts";

void begin();
await speak(wantedLanguage());
effect(() => void speak(wantedLanguage()));
render(<Shell />, document.getElementById("app") as HTMLElement);
