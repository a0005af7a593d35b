import { signal } from "@preact/signals";
import { client, refusedLogin } from "../app.ts";
import { onChange } from "./live.ts";

/** Calls f whenever the reader comes back to the page, or the page to its gateway. */
function onReturn(f: () => void): () => void {
  const seen = () => document.visibilityState === "visible" && f();
  addEventListener("focus", f);
  document.addEventListener("visibilitychange", seen);
  const leave = onChange((e) => e === undefined && f());
  return () => {
    removeEventListener("focus", f);
    document.removeEventListener("visibilitychange", seen);
    leave();
  };
}

/** The time between two readings of what changes all the time, in milliseconds. */
export const lively = 5000;

/** What the server answers to a request, read anew when the reader returns: no announcement says that it has changed. */
export class Reading<A> {
  readonly value = signal<A | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  /** When the value was read; 0 = never. */
  readonly at = signal(0);
  private ended = false;
  private readonly leave: () => void;

  /** With `every`, it is read anew after so many milliseconds while the page is seen. */
  constructor(
    readonly path: string,
    every?: number,
  ) {
    const leave = onReturn(() => void this.read());
    const timer = every === undefined ? undefined : setInterval(() => document.visibilityState === "visible" && void this.read(), every);
    this.leave = () => {
      leave();
      clearInterval(timer);
    };
    void this.read();
  }

  async read(): Promise<void> {
    const answer = await this.ask(this.path);
    if (answer !== undefined) this.value.value = answer;
  }

  protected async ask(path: string): Promise<A | undefined> {
    try {
      const answer = await client.call<A>("GET", path);
      if (this.ended) return undefined;
      this.error.value = undefined;
      this.at.value = Date.now();
      return answer;
    } catch (error) {
      if (!this.ended && !refusedLogin(error)) this.error.value = error;
      return undefined;
    }
  }

  close(): void {
    this.ended = true;
    this.leave();
  }
}

/** A page of a list, the newest first. */
interface Page {
  next?: string;
  total?: number;
}

/** A list in pages. What was loaded of older pages stays when the newest page is read anew. */
export class Pages<T extends { seq: number }> extends Reading<Page> {
  readonly rows = signal<readonly T[] | undefined>(undefined);
  readonly next = signal<string | undefined>(undefined);

  constructor(
    path: string,
    private readonly member: string,
  ) {
    super(path);
  }

  override async read(): Promise<void> {
    const page = await this.ask(this.path);
    if (page === undefined) return;
    const rows = this.rowsOf(page);
    const last = rows.at(-1)?.seq;
    const older = page.next === undefined || last === undefined ? [] : (this.rows.value ?? []).filter((r) => r.seq < last);
    if (older.length === 0) this.next.value = page.next;
    this.value.value = page;
    this.rows.value = [...rows, ...older];
  }

  /** Reads the next page. */
  async more(): Promise<void> {
    const before = this.next.value;
    if (before === undefined) return;
    const page = await this.ask(`${this.path}${this.path.includes("?") ? "&" : "?"}before=${encodeURIComponent(before)}`);
    if (page === undefined || this.next.value !== before) return;
    this.next.value = page.next;
    this.rows.value = [...(this.rows.value ?? []), ...this.rowsOf(page)];
  }

  /** Takes a row out, before the server is asked again. */
  drop(row: T): void {
    this.rows.value = this.rows.value?.filter((r) => r.seq !== row.seq);
  }

  private rowsOf(page: Page): readonly T[] {
    return ((page as Record<string, unknown>)[this.member] ?? []) as T[];
  }
}
