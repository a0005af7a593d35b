import type { CanonicalEvent, Question } from "@waggle-dev/client";
import type { TeamView, Thought, ViewItem } from "@waggle-dev/client/view";
import type { Arrow, Side } from "../fold/arrows.ts";
import type { Attempts } from "../fold/attempts.ts";
import type { BarsPatch } from "../fold/bars.ts";
import type { Margin } from "../fold/blocks.ts";
import type { TaskState } from "../fold/task.ts";
import type { Member, Task, Wait } from "../fold/team.ts";

// The page and its worker talk in these messages. The worker has the log; the page has what it shows of it.

/** The logs that the page shows. */
export type Kind = "session" | "team" | "task";

/** The part of a log that is shown: the worker sends patches for no other one. */
export type Part = "talk" | "trace" | "log" | "tree" | "messages" | "board" | "work";

/** How the worker opens a log. */
export interface Opening {
  kind: Kind;
  id: string;
  part: Part;
  /** The path of the member whose conversation is shown; empty: that of the session or of the whole team. */
  member: string;
  at: number | undefined;
  /** The log begins with the first message, which has just been sent. */
  fresh: boolean;
}

/** What the page asks of its worker. Commands are for the log that `log` names; 0: for all. */
export type Command = { log: number } & (
  | ({ do: "open" } & Opening)
  | { do: "close" }
  /** The hub of all tabs is at this port; without one the worker has its own. */
  | { do: "plug"; port: MessagePort | undefined }
  /** Who the page is, empty while it is not known, and the token with which it makes requests. */
  | { do: "as"; who: string; token: string }
  /** Tell of announcements, or stop that. */
  | { do: "listen"; on: boolean }
  /** Follow the end of the log, or stop it: nobody looks. */
  | { do: "follow"; on: boolean }
  /** Show the log as of an event; undefined: as of its end. */
  | { do: "seek"; at: number | undefined }
  | { do: "part"; part: Part; member: string }
  /** The messages of a team that are in view. */
  | { do: "arrows"; from: number; to: number }
  /** Move the window over the conversation. */
  | { do: "window"; to: "earlier" | "later" | "end" }
  | { do: "filter"; text: string }
  | { do: "rows"; seqs: readonly number[] }
  | { do: "event"; seq: number; call: number }
  /** Read all of the log, or stop that. */
  | { do: "whole"; on: boolean }
);

/** A row of the log. */
export interface Row {
  seq: number;
  time: string;
  type: CanonicalEvent["type"];
  line: string;
}

/** A place of the log that stands out. */
export interface Mark {
  seq: number;
  kind: string;
}

/** A question as the page needs it: with the time at which it ends by itself. */
export interface Asked {
  question: Question;
  ends: string | undefined;
}

/** What is shown one below the other: of a session its items, of a team its messages. */
export type Shown = ViewItem | TeamView["messages"][number];

/** A text that has grown at its end, or its reasoning. */
export interface Growth {
  key: string;
  text: string;
  done: boolean;
  reasoning?: string;
  thought?: Thought;
}

/** What has changed in the window over the conversation. */
export interface TalkPatch {
  /** Whose conversation it is: the path of a member, or nothing. */
  of: string;
  /** The keys of all that is in the window, in order, if that has changed. */
  keys?: string[];
  /** What is new or has changed in more than its end. */
  set: [key: string, item: Shown][];
  grow: Growth[];
  /** Whether something stands before, or after, the window. */
  earlier: boolean;
  later: boolean;
  /** The events before these are being read, without which some things are missing. */
  partial: boolean;
  questions: Asked[];
  /** Runs that have not ended. */
  active: number;
  /** What stands beside it, if that has changed. */
  steps?: Margin["steps"];
  notes?: Margin["notes"];
  /** Who sent messages to a member of a team, where that was no person: by message. */
  senders: Record<string, Side>;
}

/** What a session or a team is called, and how it stands. */
export interface Summary {
  /** The first message of a session. */
  name: string;
  state: "idle" | "running" | "waiting" | "completed" | "partly" | "failed" | "cancelled" | "unknown_outcome";
  /** Calls whose outcome is unknown. */
  unknowns: number;
  /** Of the newest run of a session, where a job needed more than one. */
  attempts?: Attempts;
  /** Of a team. */
  status: string;
  /** Of a task. */
  task?: TaskState;
}

/** A member of a team, and what it waits for. */
export interface MemberRow extends Member {
  waits: readonly Wait[];
}

/** The messages of a team: of all that are there those in view. */
export interface ArrowsPatch {
  /** Those that have sent or got one, from the left. */
  sides: readonly Side[];
  length: number;
  /** The place of the first of `arrows`. */
  from: number;
  arrows: readonly Arrow[];
}

/** The extent of the log, and how much of it is here. */
export interface Extent {
  first: number;
  head: number;
  /** Events that have been read. */
  read: number;
  /** Whether all of the log is being read. */
  reading: boolean;
}

/** What the worker tells the page: only what has changed, at most thirty times a second. */
export type Report = { log: number } & (
  | {
      do: "patch";
      /** Up to which event the view is. */
      seq: number;
      extent?: Extent;
      summary?: Summary;
      talk?: TalkPatch;
      bars?: BarsPatch;
      /** The members of a team in the order of the tree. */
      members?: readonly MemberRow[];
      arrows?: ArrowsPatch;
      tasks?: readonly Task[];
      /** The event at which the view stands. */
      at?: { seq: number; time: string; type: string };
      marks?: Mark[];
    }
  /** The events that fit a filter, as far as they have been read. */
  | { do: "filtered"; text: string; seqs: Uint32Array<ArrayBuffer> }
  | { do: "rows"; rows: Row[] }
  | { do: "answer"; call: number; value: CanonicalEvent | undefined }
  /** The server's snapshot says something else than the events do. The page shows what the events say. */
  | { do: "differs"; seq: number }
  /** Something has happened, in any log. */
  | { do: "announced"; event: CanonicalEvent }
  /** Whether announcements come. What happened before this was not told. */
  | { do: "up"; up: boolean }
  | { do: "error"; error: Fault }
);

/** An error on its way between the two. */
export interface Fault {
  code: string;
  message: string;
  status: number;
  detail: unknown;
}
