import { signal } from "@preact/signals";
import type { CanonicalEvent, LogPage } from "@waggle-dev/client";
import { authorization, client, consoleInfo } from "../app.ts";
import { type Arrived, type Tally, tally } from "../fold/tally.ts";

/** Where a POST request kills the server, which starts again: with `waggle demo` alone, otherwise empty. */
export const plug = signal("");

/** Finds out whether the server may be killed. */
export async function lookForPlug(): Promise<void> {
  plug.value = (await consoleInfo())?.plug ?? "";
}

/** What has become of the server since it was killed, as times of this browser. */
export interface Fall {
  killed: number;
  /** The connection was lost. */
  lost?: number;
  /** The server answers again. */
  back?: number;
  /** How many events came with the first page of the new connection, which the server had stored before. */
  missed?: number;
  /** The first event came that was made after the restart. */
  resumed?: number;
}

/** Between two tries to connect, in milliseconds. */
const pause = 250;

const rest = (ms: number) => new Promise((go) => setTimeout(go, ms));

/**
 * Follows a session apart from the rest of the page, as simply as any program could: it notes each event that comes, and after a
 * loss asks for those after the last one. Nothing is sorted or left out, so that what the server does wrong shows.
 */
export class Witness {
  readonly fall = signal<Fall | undefined>(undefined);
  readonly result = signal<Tally | undefined>(undefined);
  private readonly came: Arrived[] = [];
  private readonly leave = new AbortController();
  private last: number;

  constructor(
    readonly session: string,
    private readonly after: number,
  ) {
    this.last = after;
    void this.follow();
  }

  close(): void {
    this.leave.abort();
  }

  /** Kills the server. */
  async pull(): Promise<void> {
    this.result.value = undefined;
    const fall = { killed: Date.now() };
    const answer = await fetch(plug.value, { method: "POST", signal: this.leave.signal });
    if (!answer.ok) throw new Error(await answer.text());
    this.fall.value = fall;
  }

  /** Compares what has come with the log, up to an event that has come. */
  async count(head: number): Promise<void> {
    if (this.last < head || this.result.value) return;
    const log: number[] = [];
    for (let next = this.after; ; ) {
      const page = await client.call<LogPage>("GET", `${this.path("logs/session")}/events?after=${next}&limit=1000`);
      for (const e of page.events as unknown as CanonicalEvent[]) if (e.sequence <= head) log.push(e.sequence);
      if (!page.more || Number(page.next) >= head) break;
      next = Number(page.next);
    }
    this.result.value = tally(
      this.came.filter(([from]) => from <= head),
      log,
    );
  }

  private path(of: string): string {
    return `/api/v1/${of}/${encodeURIComponent(this.session)}`;
  }

  private async follow(): Promise<void> {
    const { signal } = this.leave;
    while (!signal.aborted) {
      await this.connect(signal).catch(() => {});
      const fall = this.fall.peek();
      if (fall && fall.lost === undefined) this.fall.value = { ...fall, lost: Date.now() };
      await rest(pause);
    }
  }

  private async connect(signal: AbortSignal): Promise<void> {
    const answer = await fetch(`${this.path("sessions")}/stream?after=${this.last}`, { headers: authorization(), signal });
    if (!answer.ok || !answer.body) return;
    const { last: stored } = await client.call<{ last: number }>("GET", `${this.path("logs/session")}/head`);
    const fall = this.fall.peek();
    if (fall?.lost !== undefined && fall.back === undefined)
      this.fall.value = { ...fall, back: Date.now(), missed: Math.max(0, stored - this.last) };
    let rest = "";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data:")) this.take(JSON.parse(line.slice(5)) as CanonicalEvent, stored);
    }
  }

  private take(e: CanonicalEvent, stored: number): void {
    if (e.sequence === undefined) return; // a problem of the stream
    this.came.push([e.from ?? e.sequence, e.sequence]);
    this.last = e.sequence;
    const fall = this.fall.peek();
    if (fall?.back !== undefined && fall.resumed === undefined && e.sequence > stored) this.fall.value = { ...fall, resumed: Date.now() };
  }
}
