import { type CanonicalEvent, type Snapshot, WaggleClient } from "@waggle-dev/client";
import { Tap } from "../src/live/tap.ts";
import { Keeper } from "../src/log/keeper.ts";
import type { Kind, Opening, Part, Report, Shown } from "../src/log/protocol.ts";
import { emptyState } from "../src/log/states.ts";
import { Conversation } from "../src/model/conversation.ts";

const parts: Record<Kind, Part> = { session: "talk", team: "tree", task: "work" };

/** What a page is told of a log, and a way to wait for it. */
export class Told {
  readonly talk = new Conversation();
  readonly reports: (Report | Omit<Report, "log">)[] = [];
  /** The event that is shown. */
  at = 0;
  reading = false;
  /** The members of a team, and the state of a task. */
  tree: unknown;
  task: unknown;
  private look = () => {};

  take = (r: Parameters<ConstructorParameters<typeof Keeper>[3]>[0]): void => {
    this.reports.push(r);
    if (r.do === "patch") {
      if (r.talk) this.talk.take(structuredClone(r.talk));
      this.tree = r.members ?? this.tree;
      this.task = r.summary?.task ?? this.task;
      if (r.extent) this.reading = r.extent.reading;
      this.at = r.seq;
    }
    this.look();
  };

  until(there: () => boolean): Promise<void> {
    return new Promise((go) => {
      this.look = () => there() && go();
      this.look();
    });
  }

  get items(): Shown[] {
    return (this.talk.keys.value ?? []).map((k) => this.talk.item(k).value);
  }

  count(what: Report["do"]): number {
    return this.reports.filter((r) => (r as Report).do === what).length;
  }
}

/** A log that is served as the gateway does it, without one: what is asked for is noted, and answers can be held back. */
export class Served {
  /** The requests so far, without the path of the log. */
  readonly asked: string[] = [];
  /** The most requests for pages that were on at once. */
  most = 0;
  /** Changes a snapshot; undefined: there is none. */
  snapshot: ((s: Snapshot) => Snapshot | undefined) | undefined = (s) => s;
  private on = 0;
  private readonly waiting: (() => void)[] = [];
  private holds = false;
  private look = () => {};

  constructor(
    readonly kind: Kind,
    readonly log: readonly CanonicalEvent[],
  ) {}

  /** Opens the log as the worker of a page does. */
  open(o: Partial<Opening> = {}): { keeper: Keeper; told: Told; opened: Promise<void> } {
    const told = new Told();
    const client = new WaggleClient({ url: "http://waggle", fetch: (input) => this.answer(new URL(String(input))) });
    const opening = { kind: this.kind, id: "log", part: parts[this.kind], member: "", at: undefined, fresh: false, ...o };
    const keeper = new Keeper(client, new Tap(), opening, told.take);
    return { keeper, told, opened: keeper.open() };
  }

  /** Holds the events back from now on. */
  hold(): void {
    this.holds = true;
  }

  release(): void {
    this.holds = false;
    for (const go of this.waiting.splice(0)) go();
  }

  until(there: () => boolean): Promise<void> {
    return new Promise((go) => {
      this.look = () => there() && go();
      this.look();
    });
  }

  /** The requests for a stretch of all events. */
  get stretches(): string[] {
    return this.asked.filter((q) => /^events\?after=\d+&limit=\d+$/.test(q));
  }

  private async answer(url: URL): Promise<Response> {
    const [, what = ""] = /^\/api\/v1\/logs\/\w+\/log\/(.*)$/.exec(url.pathname) ?? [];
    this.asked.push(what + url.search);
    this.look();
    if (what === "head") return Response.json({ kind: this.kind, first: 1, last: this.log.length });
    if (what === "snapshot") return this.folded(Number(url.searchParams.get("at")));
    if (what !== "events") return Response.json({}, { status: 404 });
    this.most = Math.max(this.most, ++this.on);
    if (this.holds) await new Promise<void>((go) => this.waiting.push(go));
    this.on--;
    return Response.json(this.page(url.searchParams));
  }

  private page(q: URLSearchParams): object {
    const types = q.get("types")?.split(",");
    const limit = Number(q.get("limit"));
    const fit = this.log.filter((e) => types?.includes(e.type) ?? true);
    if (!q.has("before")) {
      const events = fit.filter((e) => e.sequence > Number(q.get("after")));
      return { events: events.slice(0, limit), more: events.length > limit };
    }
    const events = fit.filter((e) => e.sequence < Number(q.get("before")));
    const page = events.slice(-limit);
    return { events: page, more: events.length > limit, next: String(page[0]?.sequence ?? 0) };
  }

  private folded(at: number): Response {
    const state = emptyState(this.kind);
    for (const e of this.log.slice(0, at)) state.take(e);
    const { type, time } = this.log[at - 1] as CanonicalEvent;
    const s = { kind: this.kind, id: "log", base: 1, seq: at, type, time, ...state.image };
    const said = this.snapshot?.(JSON.parse(JSON.stringify(s)) as Snapshot);
    return said ? Response.json(said) : Response.json({}, { status: 404 });
  }
}
