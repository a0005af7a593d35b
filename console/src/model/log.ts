import { batch, signal } from "@preact/signals";
import { type CanonicalEvent, WaggleError } from "@waggle-dev/client";
import { authorization, refusedLogin } from "../app.ts";
import { type Bar, changed } from "../fold/bars.ts";
import type { Task } from "../fold/team.ts";
import type { ArrowsPatch, Extent, Kind, Mark, MemberRow, Part, Report, Summary } from "../log/protocol.ts";
import { sample, sampleLines } from "../log/sample.ts";
import { Conversation } from "./conversation.ts";
import { whileShown } from "./live.ts";
import { LogRows } from "./rows.ts";
import { connect, errorOf, type Line } from "./worker.ts";

/** One log, as the worker tells of it: what the page shows, and no more. */
export class LogModel {
  /** The extent of the log, and how much of it is here. */
  readonly extent = signal<Extent>({ first: 1, head: 0, read: 0, reading: false });
  /** Up to where views show the log; undefined: to its end, live. */
  readonly at = signal<number | undefined>(undefined);
  /** Why the log cannot be read. */
  readonly error = signal<unknown>(undefined);
  readonly summary = signal<Summary>({ name: "", state: "idle", unknowns: 0, status: "" });
  /** The event at which the views stand. */
  readonly place = signal<{ seq: number; time: string; type: string } | undefined>(undefined);
  readonly marks = signal<readonly Mark[]>([]);
  readonly talk = new Conversation();
  readonly bars = signal<{ bars: readonly Bar[]; until: number } | undefined>(undefined);
  /** Of a team: its members in the order of the tree, the messages in view, and its tasks. */
  readonly members = signal<readonly MemberRow[] | undefined>(undefined);
  readonly arrows = signal<ArrowsPatch | undefined>(undefined);
  readonly tasks = signal<readonly Task[] | undefined>(undefined);
  readonly rows: LogRows;
  /** Whether the log began with a message that this page sent. */
  readonly fresh: boolean;
  private line: Line | undefined;
  private leave: () => void = () => {};
  private part: Part;
  private member: string;
  private readonly calls = new Map<number, { ok: (value: CanonicalEvent | undefined) => void; no: (error: Error) => void }>();

  constructor(
    readonly kind: Kind,
    readonly id: string,
    o: { part: Part; member?: string | undefined; at?: number | undefined; fresh?: boolean },
  ) {
    this.part = o.part;
    this.member = o.member ?? "";
    this.at.value = o.at;
    this.fresh = o.fresh ?? false;
    this.rows = new LogRows((c) => this.line?.send(c));
    if (!o.fresh) this.read();
  }

  /** Begins to read the log. A fresh one has its first message since a moment. */
  read(fresh = false): void {
    this.hangUp();
    this.error.value = undefined;
    this.line = connect((r) => this.take(r));
    const { kind, id, part, member } = this;
    this.line.send({ do: "open", kind, id, part, member, fresh, at: this.at.value });
    this.rows.again();
    if (id !== sample) this.leave = whileShown((on) => this.line?.send({ do: "follow", on }));
  }

  private take(r: Report): void {
    switch (r.do) {
      case "patch":
        batch(() => this.patch(r));
        return;
      case "filtered":
        this.rows.filtered(r.text, r.seqs);
        return;
      case "rows":
        this.rows.take(r.rows);
        return;
      case "answer":
        this.calls.get(r.call)?.ok(r.value);
        this.calls.delete(r.call);
        return;
      case "differs":
        console.error(`The server's snapshot of ${this.kind} ${this.id} as of event ${r.seq} says something else than its events.`);
        return;
      case "error": {
        const error = errorOf(r.error);
        for (const c of this.calls.values()) c.no(error);
        this.calls.clear();
        if (!refusedLogin(error)) this.error.value = error;
      }
    }
  }

  private patch(p: Extract<Report, { do: "patch" }>): void {
    if (p.extent) this.extent.value = p.extent;
    if (p.summary) this.summary.value = p.summary;
    if (p.talk) this.talk.take(p.talk);
    if (p.bars) this.bars.value = changed(this.bars.peek(), p.bars);
    if (p.members) this.members.value = p.members;
    if (p.arrows) this.arrows.value = p.arrows;
    if (p.tasks) this.tasks.value = p.tasks;
    if (p.at) this.place.value = p.at;
    if (p.marks) this.marks.value = p.marks;
  }

  /** Shows the log as of an event; undefined: as of its end. */
  seek(at: number | undefined): void {
    if (this.at.value === at) return;
    this.at.value = at;
    this.line?.send({ do: "seek", at });
  }

  /** Shows another part of the log, or the conversation of another member. */
  show(part: Part, member = ""): void {
    if (this.part === part && this.member === member) return;
    this.part = part;
    this.member = member;
    this.line?.send({ do: "part", part, member });
  }

  /** Shows other messages of a team. */
  look(from: number, to: number): void {
    this.line?.send({ do: "arrows", from, to });
  }

  /** Moves the window over the conversation. */
  move(to: "earlier" | "later" | "end"): void {
    this.line?.send({ do: "window", to });
  }

  /** Reads the rest of the log, or stops it. */
  whole(on: boolean): void {
    this.line?.send({ do: "whole", on });
  }

  /** The newest event that is known. */
  get head(): number {
    return this.extent.value.head;
  }

  /** The newest event that views show. */
  get last(): number {
    return Math.min(this.at.value ?? this.head, this.head);
  }

  /** Whether the views show an earlier moment. */
  get inPast(): boolean {
    return this.at.value !== undefined && this.at.value < this.head;
  }

  /** Whether the views still show another moment than the one that is asked for. */
  get behind(): boolean {
    return this.inPast && this.last >= this.extent.value.first && this.place.value?.seq !== this.last;
  }

  /** Whether there is something to show of a part of a session. */
  has(part: "talk" | "trace" | "log"): boolean {
    if (part === "log") return this.head > 0;
    return (part === "talk" ? this.talk.keys.value : this.bars.value) !== undefined;
  }

  /** Whether there is no such log, or the principal may not see it. */
  get missing(): boolean {
    const e = this.error.value;
    return e instanceof WaggleError && (e.status === 404 || e.status === 410);
  }

  /** An event with all that is in it. */
  event(seq: number): Promise<CanonicalEvent | undefined> {
    return this.call((call) => this.line?.send({ do: "event", seq, call })) as Promise<CanonicalEvent | undefined>;
  }

  /** Saves the events that views show. */
  save(): Promise<void> {
    return saveLog(this.kind, this.id, this.last);
  }

  private called = 0;

  private call(send: (call: number) => void): Promise<CanonicalEvent | undefined> {
    const call = ++this.called;
    return new Promise((ok, no) => {
      this.calls.set(call, { ok, no });
      send(call);
    });
  }

  private hangUp(): void {
    this.leave();
    this.leave = () => {};
    this.line?.end();
    this.line = undefined;
  }

  close(): void {
    this.hangUp();
  }
}

/** Saves the events of a log as a file of JSON lines, which the server makes; up to one of them, or all. */
export async function saveLog(kind: Kind, id: string, until?: number): Promise<void> {
  const path = `/api/v1/logs/${kind}/${encodeURIComponent(id)}/export${until === undefined ? "" : `?until=${until}`}`;
  const blob = id === sample ? new Blob([await sampleLines()]) : await exported(path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${id}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function exported(path: string): Promise<Blob> {
  const answer = await fetch(path, { headers: authorization() });
  if (!answer.ok) throw new Error(((await answer.json()) as { detail: string }).detail);
  return answer.blob();
}
