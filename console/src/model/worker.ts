import { WaggleError } from "@waggle-dev/client";
import { token } from "../app.ts";
import type { Command, Fault, Report } from "../log/protocol.ts";
import script from "../log/worker.ts?worker&url";

interface Policy {
  createScriptURL(url: string): unknown;
}
declare global {
  interface Window {
    trustedTypes?: { createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy };
  }
}

/** The address of the worker, as the policy of the page wants it: no other script can become a worker. */
function address(): string {
  const policy = window.trustedTypes?.createPolicy("waggle-worker", {
    createScriptURL: (url) => {
      if (url !== script) throw new TypeError(`${url} is not the worker of the console`);
      return url;
    },
  });
  return (policy?.createScriptURL(script) ?? script) as string;
}

type Listener = (r: Report) => void;

const listeners = new Map<number, Listener>();
let worker: Worker | undefined;
let logs = 0;

/** The one worker of the tab. It begins with what is asked first. */
function started(): Worker {
  if (worker) return worker;
  const at = address();
  const own = new Worker(at, { type: "module", name: "waggle" });
  worker = own;
  own.addEventListener("message", ({ data }: MessageEvent<Report>) => listeners.get(data.log)?.(data));
  own.addEventListener("error", (e) => {
    const error = { code: "CONSOLE", message: e.message || "The worker of the page cannot be started.", status: 0, detail: undefined };
    for (const [log, f] of listeners) f({ log, do: "error", error });
  });
  const plug = (port?: MessagePort) => own.postMessage({ log: 0, do: "plug", port } satisfies Command, port ? [port] : []);
  if ("SharedWorker" in window) share(at, plug);
  else plug();
  order({ do: "as", who: "", token: token() });
  return own;
}

/** Plugs the worker in at the hub of all tabs, which is told when the page goes. */
function share(at: string, plug: (port?: MessagePort) => void): void {
  const hub = new SharedWorker(at, { type: "module", name: "waggle" });
  const enter = () => {
    const line = new MessageChannel();
    hub.port.postMessage(undefined, [line.port1]);
    plug(line.port2);
  };
  enter();
  hub.addEventListener("error", () => plug());
  addEventListener("pagehide", () => hub.port.postMessage(undefined));
  addEventListener("pageshow", (e) => e.persisted && enter()); // it was kept, and is shown again
}

/** Asks the worker for something that is about no log. */
export function order(c: Extract<Ask, { do: "as" | "listen" }>, listener?: Listener): void {
  if (listener) listeners.set(0, listener);
  started().postMessage({ log: 0, ...c } satisfies Command);
}

type Ask = Command extends infer C ? (C extends unknown ? Omit<C, "log"> : never) : never;

/** A log in the worker. */
export interface Line {
  send(c: Ask): void;
  end(): void;
}

/** Opens a line to the worker for one log. */
export function connect(listener: Listener): Line {
  const log = ++logs;
  listeners.set(log, listener);
  return {
    send: (c) => started().postMessage({ log, ...c } as Command),
    end: () => {
      listeners.delete(log);
      worker?.postMessage({ log, do: "close" } satisfies Command);
    },
  };
}

/** An error of the worker as an error. */
export function errorOf(f: Fault): Error {
  return f.code === "CONSOLE" ? new Error(f.message) : new WaggleError(f.code, f.message, { status: f.status, detail: f.detail });
}
