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

/** The browser's own trace of a page and its workers. A browser makes one at a time: a test that failed may have left one. */
export class Trace {
  private static left = false;

  private constructor(private readonly browser: Browser) {}

  static async start(browser: Browser): Promise<Trace> {
    if (Trace.left) await browser.stopTracing();
    const t = new Trace(browser);
    await t.begin();
    return t;
  }

  private begin(): Promise<void> {
    Trace.left = true;
    return this.browser.startTracing(undefined, { categories: ["toplevel", "blink.user_timing", "__metadata"] });
  }

  /** The longest tasks since the last call, in words; the trace goes on. */
  async lap(page: Page): Promise<string> {
    const words = await this.stop(page);
    await this.begin();
    return words;
  }

  /** The longest tasks since the last call, in words; the trace ends. */
  async stop(page: Page): Promise<string> {
    const tasks = await this.end(page);
    const longest = (thread: string): string => {
      const all = tasks(thread);
      const ms = (of: (e: Event) => number) => (all.reduce((most, e) => Math.max(most, of(e)), 0) / 1000).toFixed(0);
      return `${ms((e) => e.dur ?? 0)} ms, ${ms((e) => e.tdur ?? 0)} ms of the processor`;
    };
    return `longest task of the page ${longest("CrRendererMain")}; of the worker ${longest("DedicatedWorker thread")}`;
  }

  /** How long the page's own thread had the processor since the last call, in ms: in all, and for its longest task. The trace goes on. */
  async spent(page: Page): Promise<{ all: number; longest: number }> {
    const times = (await this.end(page))("CrRendererMain").map((e) => (e.tdur ?? 0) / 1000);
    await this.begin();
    return { all: times.reduce((sum, ms) => sum + ms, 0), longest: Math.max(...times) };
  }

  /** Ends the trace, and returns the tasks of a thread. */
  private async end(page: Page): Promise<(thread: string) => Event[]> {
    await page.evaluate((mark) => performance.mark(mark), mark);
    Trace.left = false;
    const { traceEvents: all } = JSON.parse((await this.browser.stopTracing()).toString()) as { traceEvents: Event[] };
    const pid = all.find((e) => e.name === mark)?.pid; // the browser has pages of its own
    const own = all.filter((e) => e.pid === pid);
    const threads = new Map(own.filter((e) => e.name === "thread_name").map((e) => [e.tid, e.args?.name ?? ""] as const));
    return (thread) => {
      const tasks = own.filter((e) => e.ph === "X" && e.name.endsWith("RunTask") && threads.get(e.tid) === thread);
      if (tasks.length === 0) throw new Error(`the trace has no task of ${thread}; its threads are ${[...threads.values()]}`);
      return tasks;
    };
  }
}
