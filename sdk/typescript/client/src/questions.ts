import type { QuestionAnswer } from "./generated/api.js";
import type { CanonicalEvent, InputRequestedData, Step, TaskAskedData } from "./generated/events.js";

/** A decision that people are asked for. */
export interface Question {
  id: string;
  /** Its id among the questions of all logs, for `client.questions.answer`. */
  inbox: string;
  /** `plan`, `tool`, `budget`, `client_tool`, or of an agent of the swarm `agent`, in the log of a task `task`. */
  scope: string;
  /** The run that waits, if any. */
  run: string | undefined;
  /** For people: what is asked. */
  text: string;
  /** Of a team: the names of the members on the way to the one that asks. */
  route: readonly string[];
  /** The whole question as it stands in the log. */
  data: InputRequestedData | TaskAskedData;
}

/** An answer to a question. */
export interface Reply {
  approved: boolean;
  /** Why, for the model. */
  feedback?: string;
  /** Of a plan: carried out in place of the proposed steps. */
  steps?: Step[];
  /** Of a plan: changed members of steps, by their ids. */
  modified?: Record<string, Partial<Step>>;
  /** Of a tool's call whose question has `parameters`: what the call runs with instead. */
  arguments?: Record<string, unknown>;
  /** To an agent that asks, with `approved`: the answer. */
  message?: unknown;
}

/** A reply as the HTTP API takes it. */
export function answerOf(reply: Reply | boolean): QuestionAnswer {
  return bodyOf(typeof reply === "boolean" ? { approved: reply } : reply);
}

function bodyOf({ approved, feedback, steps, modified, arguments: changed, message }: Reply): QuestionAnswer {
  if (approved && message !== undefined) return { decision: "answer", message };
  const why = feedback === undefined ? {} : { feedback };
  if (!approved) return { decision: "reject", ...why };
  const edits = {
    ...(steps && { steps }),
    ...(modified && { modified_steps: Object.entries(modified).map(([id, members]) => ({ ...members, id })) }),
    ...(changed && { arguments: changed }),
  };
  return { decision: Object.keys(edits).length > 0 ? "modify" : "approve", ...why, ...edits };
}

/** An event of a member or of a nested team as itself, with the names on the way to its member. */
export function unwrap(e: CanonicalEvent): { event: CanonicalEvent; route: readonly string[] } {
  const route: string[] = [];
  let event = e;
  for (;;) {
    if (event.type === "team.member_event") {
      route.push(event.data.member_name);
      event = event.data.event as CanonicalEvent;
    } else if (event.type === "team.sub_team_event") {
      route.push(event.data.sub_team_node_name);
      event = event.data.sub_team_event as CanonicalEvent;
    } else return { event, route };
  }
}

/** The open questions of a log, made of its events. */
export class Questions {
  private readonly open = new Map<string, Question>();

  /** The open questions, the oldest first. */
  get list(): Question[] {
    return [...this.open.values()];
  }

  /** The same questions in a book of its own. */
  fork(): Questions {
    return Questions.of(this.open.values());
  }

  /** A book with open questions, the oldest first. */
  static of(questions: Iterable<Question>): Questions {
    const f = new Questions();
    for (const q of questions) f.open.set(q.id, q);
    return f;
  }

  /** Takes the next event and reports whether the open questions have changed. */
  take(e: CanonicalEvent): boolean {
    const { event, route } = unwrap(e);
    switch (event.type) {
      case "input.requested":
      case "task.asked":
        this.open.set(event.data.input_id, questionOf(event.type, event.data, route, event.subject));
        return true;
      case "input.answered":
      case "input.expired":
      case "task.ask_expired":
        return this.open.delete(event.data.input_id);
      case "task.messaged":
        return event.data.input_id !== undefined && this.open.delete(event.data.input_id);
      case "run.completed":
      case "run.failed":
      case "run.cancelled":
        return this.drop((q) => q.run === event.data.run_id);
      case "task.finished":
      case "session.deleted":
      case "team.closed":
        return this.drop(() => true);
      default:
        return false;
    }
  }

  private drop(fits: (q: Question) => boolean): boolean {
    let changed = false;
    for (const q of this.list) if (fits(q)) changed = this.open.delete(q.id) || changed;
    return changed;
  }
}

/** The question of an event that asks one: `input.requested` or `task.asked`. */
export function questionOf(
  type: string,
  data: InputRequestedData | TaskAskedData,
  route: readonly string[] = [],
  subject: string | undefined = "",
): Question {
  const inbox = [...subject.split(".").slice(1), data.input_id].join(".");
  if (type !== "task.asked") return asked(data as InputRequestedData, route, inbox);
  const { input_id: id, message } = data as TaskAskedData;
  const text = typeof message === "string" ? message : JSON.stringify(message ?? "An agent asks.");
  return { id, inbox, scope: "task", run: undefined, text, route, data };
}

function asked(d: InputRequestedData, route: readonly string[], inbox: string): Question {
  const text =
    d.scope === "plan"
      ? `Carry out this plan of ${d.steps?.length ?? 0} steps?`
      : d.tool
        ? `May ${d.tool} run?`
        : d.scope === "budget"
          ? "The budget of the run is used up. Go on?"
          : (d.description ?? d.summary ?? d.scope);
  return { id: d.input_id, inbox, scope: d.scope, run: d.run_id, text, route, data: d };
}
