import { render } from "preact";
import "./style/main.css";
import { begin } from "./app.ts";
import { Shell } from "./shell.tsx";

void begin();
render(<Shell />, document.getElementById("app") as HTMLElement);
