import type { Browser, Page } from "playwright-core";

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

const mark = "end of the trace";

/** The longest task of a thread: ms on the wall clock, and ms of the processor. */
export interface Task {
  wall: number;
  processor: number;
}

/** The browser's own trace of a page and its workers. A browser makes one at a time. */
export class Trace {
  private constructor(private readonly browser: Browser) {}

  static async start(browser: Browser): Promise<Trace> {
    const t = new Trace(browser);
    await t.begin();
    return t;
  }

  private begin(): Promise<void> {
    return this.browser.startTracing(undefined, { categories: ["toplevel", "blink.user_timing", "__metadata"] });
  }

  private async end(page: Page): Promise<{ page: Task; worker: Task }> {
    await page.evaluate((mark) => performance.mark(mark), mark);
    const { traceEvents: all } = JSON.parse((await this.browser.stopTracing()).toString()) as { traceEvents: Event[] };
    const pid = all.find((e) => e.name === mark)?.pid; // the browser has pages of its own
    const own = all.filter((e) => e.pid === pid);
    const threads = new Map(own.filter((e) => e.name === "thread_name").map((e) => [e.tid, e.args?.name ?? ""] as const));
    const longest = (thread: string): Task => {
      const tasks = own.filter((e) => e.ph === "X" && e.name.endsWith("RunTask") && threads.get(e.tid) === thread);
      if (tasks.length === 0) throw new Error(`the trace has no task of ${thread}; its threads are ${[...threads.values()]}`);
      const ms = (of: (e: Event) => number) => tasks.reduce((most, e) => Math.max(most, of(e)), 0) / 1000;
      return { wall: ms((e) => e.dur ?? 0), processor: ms((e) => e.tdur ?? 0) };
    };
    return { page: longest("CrRendererMain"), worker: longest("DedicatedWorker thread") };
  }

  /** The longest tasks since the last call, in words; the trace goes on. */
  async lap(p: Page): Promise<string> {
    const words = await this.stop(p);
    await this.begin();
    return words;
  }

  /** The longest tasks since the last call, in words; the trace ends. */
  async stop(p: Page): Promise<string> {
    const { page, worker } = await this.end(p);
    const words = (t: Task) => `${t.wall.toFixed(0)} ms, ${t.processor.toFixed(0)} ms of the processor`;
    return `longest task of the page ${words(page)}; of the worker ${words(worker)}`;
  }
}
