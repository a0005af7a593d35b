import { signal } from "@preact/signals";
import type { Command, Row } from "../log/protocol.ts";

/** So many rows are kept. */
const most = 2000;

type Ask = Extract<Command, { do: "rows" | "filter" }> extends infer C ? (C extends unknown ? Omit<C, "log"> : never) : never;

/** The rows of a log that the page has: those in view, and some that were. */
export class LogRows {
  /** Changes when rows have come. */
  readonly rev = signal(0);
  /** The events that fit the filter; undefined: all. */
  readonly found = signal<Uint32Array | undefined>(undefined);
  private text = "";
  private readonly known = new Map<number, Row>();
  private asked = false;
  private wanted: readonly number[] = [];

  constructor(private readonly send: (c: Ask) => void) {}

  /** Shows only the events that fit a text. */
  filter(text: string): void {
    const now = text.trim();
    if (now === this.text) return;
    this.text = now;
    this.found.value = now === "" ? undefined : new Uint32Array();
    this.send({ do: "filter", text: now });
  }

  filtered(text: string, seqs: Uint32Array): void {
    if (text === this.text) this.found.value = seqs;
  }

  /** A row, if it is here. */
  row(seq: number): Row | undefined {
    return this.known.get(seq);
  }

  /** Asks for the rows that are in view and not here. One request is on at a time. */
  want(seqs: readonly number[]): void {
    this.wanted = seqs;
    if (this.asked) return;
    const missing = seqs.filter((s) => !this.known.has(s));
    if (missing.length === 0) return;
    this.asked = true;
    this.send({ do: "rows", seqs: missing });
  }

  take(rows: readonly Row[]): void {
    this.asked = false;
    for (const r of rows) this.known.set(r.seq, r);
    const inView = new Set(this.wanted);
    for (const seq of this.known.keys()) {
      if (this.known.size <= most) break;
      if (!inView.has(seq)) this.known.delete(seq);
    }
    this.rev.value++;
    if (rows.length > 0) this.want(this.wanted);
  }

  /** Another reader of the log: what was asked of the last one is asked again. */
  again(): void {
    this.asked = false;
    if (this.text !== "") this.send({ do: "filter", text: this.text });
  }
}
