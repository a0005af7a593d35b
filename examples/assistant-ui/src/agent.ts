import { EventType } from "@ag-ui/client";
import { WaggleAgent } from "@waggle-dev/client/agui";
import { catchError, concat, concatMap, defer, filter, from, map, Observable, tap, throwError } from "rxjs";
import { opening, type Frame as Part, Serial, whole } from "./serial.js";

type Events = ReturnType<WaggleAgent["run"]>;

const runIdOf = (e: unknown) => (e as Frame).runId ?? "";

/** What is looked at of an event of AG-UI. */
interface Frame extends Part {
  runId?: string;
  role?: string;
  outcome?: { type: string };
}

export interface PlanContent {
  summary?: string;
  tasks: { id: string; title: string; status: string }[];
}

/** A run without anything to say joins the thread: that is how the page comes back. */
export class PageAgent extends WaggleAgent {
  plan: PlanContent | undefined;
  private readonly shown = new Set<string>();
  private joins: (() => void) | undefined;

  override run(input: Parameters<WaggleAgent["run"]>[0]): Events {
    const begins = this.joins ?? (input.messages.length === 0 ? () => {} : undefined);
    this.joins = undefined;
    if (begins) {
      const events = this.join().pipe(tap((e) => e.type === EventType.RUN_STARTED && this.shown.add(runIdOf(e))));
      return forAssistantUi(events, true).pipe(
        map((e, n) => {
          if (n === 0) begins();
          return e;
        }),
      );
    }
    const [answer] = (input as { resume?: { interruptId: string }[] }).resume ?? [];
    this.shown.add(answer ? `${input.runId}.${answer.interruptId}.` : input.runId); // how its id at the server begins
    const forwardedProps = { ...input.forwardedProps, waggle: { mode: "plan", confirmPlan: true } };
    return forAssistantUi(super.run({ ...input, forwardedProps }), false);
  }

  /** Has the next run join the thread; `begins` is called before its first event. */
  joinNext(begins: () => void): void {
    this.joins = begins;
  }

  /** Whether a run was or is shown. */
  hasShown(runId: string): boolean {
    return [...this.shown].some((id) => (id.endsWith(".") ? runId.startsWith(id) : runId === id));
  }

  /** The ids of the run that is on, and of all that follow. */
  runs(): Observable<string> {
    const reader = this.clone(); // leaving a run does not end it
    return reader.join({ follow: true }).pipe(
      filter((e) => e.type === EventType.RUN_STARTED),
      map(runIdOf),
    );
  }

  /** assistant-ui shows messages and tool calls; what Waggle shows besides them is in the activities. */
  readonly watch = (listener: () => void): (() => void) => {
    const { unsubscribe } = this.subscribe({
      onMessagesChanged: ({ messages }) => {
        const plan = messages.findLast((m) => m.role === "activity" && m.activityType === "waggle.plan");
        if (plan === undefined) return;
        this.plan = structuredClone(plan.content) as unknown as PlanContent;
        listener();
      },
    });
    return unsubscribe;
  };
}

/**
 * What assistant-ui needs beside the events. A message that the model began anew is missing in the next snapshot, where assistant-ui
 * keeps the message of the run: it gets an empty one in its place. Of a joined thread, a message that is being written needs the
 * text so far from its own events; and questions a message of the run, because they are kept with it. Steps side by side speak one
 * after the other.
 */
function forAssistantUi(events: Events, joined: boolean): Events {
  const texts = new Map<string, string>(); // of the snapshot
  const written = new Set<string>();
  const frames = events as Observable<unknown> as Observable<Frame>;
  const out = oneByOne(joined ? begun(frames) : frames).pipe(
    concatMap((e): Frame[] => {
      const messageId = e.messageId ?? "";
      switch (e.type) {
        case EventType.MESSAGES_SNAPSHOT: {
          const messages = e.messages ?? [];
          for (const m of messages) if (typeof m.content === "string") texts.set(m.id, m.content);
          const discarded = [...written].filter((id) => !messages.some((m) => m.id === id));
          return [{ ...e, messages: [...messages, ...discarded.map((id) => ({ id, role: "assistant", content: "" }))] }];
        }
        case EventType.TEXT_MESSAGE_START: {
          const before = written.has(messageId) ? undefined : texts.get(messageId);
          written.add(messageId);
          return before ? [e, { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: before }] : [e];
        }
        case EventType.RUN_FINISHED: {
          if (!joined || e.outcome?.type !== "interrupt") return [e];
          const place = { messageId: `questions-${e.runId}` };
          return [{ type: EventType.TEXT_MESSAGE_START, role: "assistant", ...place }, { type: EventType.TEXT_MESSAGE_END, ...place }, e];
        }
        default:
          return [e];
      }
    }),
  );
  return out as Observable<unknown> as Events;
}

function oneByOne(frames: Observable<Frame>): Observable<Frame> {
  const serial = new Serial<Frame>();
  const rest = defer(() => from(serial.end()));
  const all = concat(frames.pipe(concatMap((e) => serial.take(e))), rest);
  return all.pipe(
    catchError((error) =>
      concat(
        rest,
        throwError(() => error),
      ),
    ),
  );
}

/** A joined thread begins with its messages and with the starts of those that are being written: all of it is looked at together. */
function begun(frames: Observable<Frame>): Observable<Frame> {
  return new Observable((to) => {
    let first: Frame[] | undefined = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      clearTimeout(timer);
      for (const e of whole(first ?? [])) to.next(e);
      first = undefined;
    };
    const reading = frames.subscribe({
      next: (e) => {
        if (first === undefined) return to.next(e);
        first.push(e);
        if (opening(e))
          timer ??= setTimeout(show, 100); // nothing may follow for long
        else show();
      },
      error: (e) => {
        show();
        to.error(e);
      },
      complete: () => {
        show();
        to.complete();
      },
    });
    return () => {
      clearTimeout(timer);
      reading.unsubscribe();
    };
  });
}
