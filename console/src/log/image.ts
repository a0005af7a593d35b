import { type Question, questionOf, type Snapshot, type SnapshotTalk } from "@waggle-dev/client";
import { emptyView, type View, type ViewItem } from "@waggle-dev/client/view";
import type { Arrow, Side } from "../fold/arrows.ts";
import type { Bar } from "../fold/bars.ts";
import { canonical } from "../fold/canonical.ts";
import type { TaskState } from "../fold/task.ts";
import type { Member, Task } from "../fold/team.ts";

/** A conversation as snapshots have it. */
export interface TalkImage {
  items: readonly ViewItem[];
  questions: readonly { type: string; data: unknown; ends: string | undefined }[];
  active: readonly string[];
}

/** What a team has said and has to do, as snapshots have it. */
export interface SaidImage {
  tasks: readonly Task[];
  messages: readonly object[];
  arrows: readonly Arrow[];
  sides: readonly Side[];
}

/** What a log says, as snapshots have it. */
export interface Image {
  conversation?: TalkImage;
  bars?: readonly Bar[];
  team?: SaidImage & {
    name: string;
    status: string;
    closed: boolean;
    members: readonly (Member & { conversation: TalkImage | undefined; suspended: readonly string[] | undefined })[];
  };
  task?: Omit<TaskState, "retryOf"> & { retry_of: string };
  until: number;
}

/** The image of a conversation. Some have times at which questions end. */
export function talkImage({ items, questions, active }: View, ends?: ReadonlyMap<string, string>): TalkImage {
  const open = questions.map((q) => ({ type: q.scope === "task" ? "task.asked" : "input.requested", data: q.data, ends: ends?.get(q.id) }));
  return { items, questions: open, active };
}

/** The view of a conversation in a snapshot. */
export function viewOf(talk: SnapshotTalk | undefined, seq: number): View {
  if (!talk) return emptyView;
  const questions = talk.questions.map((q) => questionOf(q.type, q.data as Question["data"]));
  return { items: talk.items as ViewItem[], questions, active: talk.active, seq };
}

/** The members of a team in a snapshot, and what each one says. */
export function membersOf(s: Snapshot) {
  return (s.team?.members ?? []).map((m) => ({
    ...(m as Member),
    view: m.conversation && viewOf(m.conversation, s.seq),
    suspended: m.suspended,
  }));
}

/** Whether a snapshot of the server says what the events say here. */
export function agrees(s: Snapshot, image: Image): boolean {
  const { conversation, bars, team, task, until } = s;
  return canonical({ conversation, bars, team, task, until }) === canonical(image);
}
