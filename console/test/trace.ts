import type { Browser } from "playwright-core";

interface Event {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** µs on the wall clock. */
  dur?: number;
  /** µs of the processor, of this thread. */
  tdur?: number;
  args?: { name?: string };
}

/** The longest task of a thread: ms on the wall clock, and ms of the processor. */
export interface Task {
  wall: number;
  processor: number;
}

/** The browser's own trace of its pages and their workers. A browser makes one at a time. */
export class Trace {
  private constructor(private readonly browser: Browser) {}

  static async start(browser: Browser): Promise<Trace> {
    const t = new Trace(browser);
    await t.begin();
    return t;
  }

  private begin(): Promise<void> {
    return this.browser.startTracing(undefined, { categories: ["toplevel", "__metadata"] });
  }

  private async end(): Promise<{ page: Task; worker: Task }> {
    const { traceEvents: all } = JSON.parse((await this.browser.stopTracing()).toString()) as { traceEvents: Event[] };
    const key = (e: Event) => `${e.pid}/${e.tid}`;
    const threads = new Map(all.filter((e) => e.name === "thread_name").map((e) => [key(e), e.args?.name ?? ""] as const));
    const longest = (name: RegExp): Task => {
      const own = all.filter((e) => e.ph === "X" && e.name.endsWith("RunTask") && name.test(threads.get(key(e)) ?? ""));
      if (own.length === 0) throw new Error(`the trace has no task of ${name}; its threads are ${[...new Set(threads.values())]}`);
      const ms = (of: (e: Event) => number) => own.reduce((most, e) => Math.max(most, of(e)), 0) / 1000;
      return { wall: ms((e) => e.dur ?? 0), processor: ms((e) => e.tdur ?? 0) };
    };
    return { page: longest(/^CrRendererMain$/), worker: longest(/^DedicatedWorker thread$/) };
  }

  /** The longest tasks since the last call, in words; the trace goes on. */
  async lap(): Promise<string> {
    const words = await this.stop();
    await this.begin();
    return words;
  }

  /** The longest tasks since the last call, in words; the trace ends. */
  async stop(): Promise<string> {
    const { page, worker } = await this.end();
    const words = (t: Task) => `${t.wall.toFixed(0)} ms, ${t.processor.toFixed(0)} ms of the processor`;
    return `longest task of the page ${words(page)}; of the worker ${words(worker)}`;
  }
}
