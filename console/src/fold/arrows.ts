import type { CanonicalEvent } from "@waggle-dev/client";
import { cut } from "./text.ts";

/** One that sends or gets messages: people, the board of tasks, or the member of a path. */
export type Side = "people" | "board" | `@${string}`;

/** A message on its way between two sides. */
export interface Arrow {
  id: string;
  /** The event that accepted it. */
  seq: number;
  time: string;
  from: Side;
  to: Side;
  text: string;
  /** It came to a nested team before, which hands it to its member. */
  handed: boolean;
  /** Why it will not reach its receiver; undefined: it does. */
  dropped: { seq: number; reason: string } | undefined;
}

type Message = Extract<CanonicalEvent, { type: "team.message" | "team.message_dropped" }>;

/** So many characters of a message are in a diagram. */
const most = 300;

/** Makes arrows of the messages of a team and of its nested teams. */
export class ArrowBook {
  private arrows: Arrow[] = [];
  private order: readonly Side[] = [];
  /** The places of arrows by the team and the id of their messages. */
  private places = new Map<string, number>();
  private shared = false;

  /** A book that goes on from arrows, and from the sides that they go between. */
  static from(arrows: readonly Arrow[], sides: readonly Side[]): ArrowBook {
    const f = new ArrowBook();
    f.arrows = [...arrows];
    f.order = sides;
    for (const [i, a] of arrows.entries()) {
      const to = a.to.slice(1);
      f.places.set(key(above(to), a.id, last(to)), i);
    }
    return f;
  }

  fork(): ArrowBook {
    const f = new ArrowBook();
    f.arrows = this.arrows;
    f.order = this.order;
    f.places = this.places;
    f.shared = this.shared = true;
    return f;
  }

  /** All arrows, in the order of the log. An arrow is a value that does not change any more. */
  get all(): readonly Arrow[] {
    return this.arrows;
  }

  /** All sides, in the order in which they first had a message. An earlier moment has the first of them. */
  get sides(): readonly Side[] {
    return this.order;
  }

  /** Takes an event of the team with the path; `e` is the event of the log that holds it. */
  take(path: string, event: Message, e: CanonicalEvent): void {
    if (this.shared) {
      this.arrows = [...this.arrows];
      this.places = new Map(this.places);
      this.shared = false;
    }
    if (event.type === "team.message") this.message(path, event, e);
    else this.drop(path, event, e);
  }

  private message(path: string, { data: d }: Extract<Message, { type: "team.message" }>, e: CanonicalEvent): void {
    const handed = path !== "" && this.places.has(key(above(path), d.message_id, last(path)));
    const from: Side = handed ? `@${path}` : sideOf(d.sender);
    this.add(
      path,
      { id: d.message_id, from, to: `@${join(path, d.member)}`, text: cut(d.content, most), handed, dropped: undefined },
      e,
      d.member,
    );
  }

  private drop(path: string, { data: d }: Extract<Message, { type: "team.message_dropped" }>, e: CanonicalEvent): void {
    const dropped = { seq: e.sequence, reason: d.reason };
    const at = this.places.get(key(path, d.message_id, d.member)) ?? -1;
    const arrow = this.arrows[at];
    if (arrow) this.arrows[at] = { ...arrow, dropped };
    else {
      const to: Side = `@${join(path, d.member)}`; // its beginning is not in the log any more
      this.add(path, { id: d.message_id, from: to, to, text: "", handed: false, dropped }, e, d.member);
    }
  }

  /** Who sent a message to a member of the team with the path. */
  sender(path: string, id: string, member: string): Side | undefined {
    const arrow = this.arrows[this.places.get(key(path, id, member)) ?? -1];
    return arrow?.handed ? this.sender(above(path), id, last(path)) : arrow?.from;
  }

  private add(path: string, a: Omit<Arrow, "seq" | "time">, e: CanonicalEvent, member: string): void {
    this.places.set(key(path, a.id, member), this.arrows.length);
    this.arrows.push({ ...a, seq: e.sequence, time: e.time });
    for (const side of [a.from, a.to]) if (!this.order.includes(side)) this.order = [...this.order, side];
  }
}

const key = (path: string, id: string, member: string) => JSON.stringify([path, id, member]);

/** The path of a name below another one. */
export const join = (path: string, name: string) => (path === "" ? name : `${path}/${name}`);

/** The path above a path; empty: the team itself. */
export const above = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

/** The last name of a path. */
export const last = (path: string) => path.slice(path.lastIndexOf("/") + 1);

function sideOf(sender: { kind: string; name?: string; route?: string } | undefined): Side {
  if (!sender) return "people";
  return sender.kind === "system" ? "board" : `@${sender.route || sender.name || ""}`;
}
