import type { CanonicalEvent } from "@waggle-dev/client";
import type { Fault } from "../log/protocol.ts";

// A tab asks the hub for topics in these messages, and gets what happens there.

/** The topic of the announcements. Every other one is a log, as KIND/ID. */
export const announcements = "events";

/** The announcements that lists change with: never a piece of a text. */
export const types = [
  "session.created",
  "session.closed",
  "session.deleted",
  "message.received",
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "input.requested",
  "input.answered",
  "input.expired",
  "task.created",
  "task.queued",
  "task.assigned",
  "task.released",
  "task.asked",
  "task.ask_expired",
  "task.finished",
  "team.member_event",
] as const;

/** What a tab asks of the hub. It numbers what it wants. */
export type Wish =
  /** Whose topics it wants, with the token of the tab. Without this it gets nothing. */
  | { do: "as"; who: string; token: string }
  /** A topic: of a log the events behind one of them. */
  | { do: "want"; n: number; topic: string; after: number }
  | { do: "leave"; n: number }
  /** The answer to a ping. */
  | { do: "here" };

/** What the hub tells of what a tab wants. */
export type News =
  | { do: "event"; n: number; event: CanonicalEvent }
  /** The log goes on behind an event that the tab does not have yet. */
  | { do: "head"; n: number; seq: number }
  /** The server has no events of the log before this one. */
  | { do: "first"; n: number; seq: number }
  /** Whether announcements come. What happened before was not announced to this tab. */
  | { do: "up"; n: number; up: boolean }
  /** The topic is not shown, or not any more. */
  | { do: "over"; n: number; error: Fault };

/** What the hub asks of a tab, and tells one that has not answered: its topics have ended. */
export type Call = { do: "ping" } | { do: "dropped" };
