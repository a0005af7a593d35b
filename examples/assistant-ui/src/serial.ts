/** What is looked at of an event of AG-UI. */
export interface Frame {
  type: string;
  messageId?: string;
  toolCallId?: string;
  parentMessageId?: string;
  subagentRunId?: string;
  delta?: string;
  messages?: { id: string; role: string; content?: unknown }[];
}

/**
 * Puts what steps say side by side one behind the other, because assistant-ui begins its message anew whenever the id of the message
 * changes: one message, thought or call is open at a time, the events of the others are held back until it is their turn. What belongs
 * together stays in order, and the end of a run comes behind everything.
 */
export class Serial<F extends Frame> {
  private held: F[] = [];
  /** The message, thought or call that is open, how many ends it lacks, and the one before it. */
  private open: string | undefined;
  private depth = 0;
  private before: string | undefined;

  /** Takes the next event and returns what may be shown now. */
  take(e: F): F[] {
    const { type } = e;
    if (type === "RUN_FINISHED" || type === "RUN_ERROR") return [...this.end(), e];
    if (type === "MESSAGES_SNAPSHOT") return [this.superseded(e), ...this.next()];
    const follows = type === "TOOL_CALL_START" && e.parentMessageId !== undefined && e.parentMessageId === this.before;
    const out = follows ? [] : this.next(); // a call follows its message at once
    const key = keyOf(e);
    const waits = key !== undefined && this.open !== undefined && this.open !== key && step(e) !== undefined;
    if (waits || this.held.some((h) => keyOf(h) === key || (type.startsWith("SUBAGENT_") && h.subagentRunId === e.subagentRunId))) {
      this.held.push(e);
      return out;
    }
    this.shows(e);
    return [...out, e];
  }

  /** Returns everything that is held back: the events are over. */
  end(): F[] {
    this.open = undefined;
    const out: F[] = [];
    while (this.held.length > 0) out.push(...this.turn());
    this.open = undefined;
    return out;
  }

  /** What is next, unless something is open. */
  private next(): F[] {
    const out: F[] = [];
    while (this.open === undefined && this.held.length > 0) out.push(...this.turn());
    return out;
  }

  /** All that is held back of the message, thought or call that has waited longest. */
  private turn(): F[] {
    const key = keyOf(this.held[0] as F);
    const out = this.held.filter((e) => keyOf(e) === key);
    this.held = this.held.filter((e) => keyOf(e) !== key);
    for (const e of out) this.shows(e);
    return out;
  }

  private shows(e: F): void {
    const by = step(e);
    if (by === undefined) return;
    const key = keyOf(e);
    if (this.open !== key) this.depth = 0;
    this.depth += by;
    this.open = this.depth > 0 || by === 0 ? key : undefined;
    this.before = e.messageId ?? e.parentMessageId ?? this.before;
  }

  /** The messages of the server have all that has ended. What has not comes with events of its own. */
  private superseded(snapshot: F): F {
    const lacks = new Map<string | undefined, number>();
    for (const e of this.held) lacks.set(keyOf(e), (lacks.get(keyOf(e)) ?? 0) + (step(e) ?? 0));
    this.held = this.held.filter((e) => (lacks.get(keyOf(e)) ?? 0) > 0 || e.type.startsWith("SUBAGENT_"));
    const waits = (id: string) => this.held.some((e) => e.messageId === id);
    return { ...snapshot, messages: (snapshot.messages ?? []).filter((m) => !waits(m.id)) };
  }
}

/** What an event is of: a message or thought, a call, or a subagent; undefined: of none of these. */
function keyOf(e: Frame): string | undefined {
  if (e.type.startsWith("TEXT_MESSAGE_") || e.type.startsWith("REASONING_")) return e.messageId;
  if (e.type.startsWith("TOOL_CALL_")) return e.toolCallId;
  return e.type.startsWith("SUBAGENT_") ? e.subagentRunId : undefined;
}

/** Whether an event begins (1), continues (0) or ends (-1) something; undefined: it does not. */
function step(e: Frame): 1 | 0 | -1 | undefined {
  if (!/^(TEXT_MESSAGE|REASONING|TOOL_CALL)_/.test(e.type) || e.type === "TOOL_CALL_RESULT") return undefined;
  if (e.type.endsWith("_START")) return 1;
  return e.type.endsWith("_END") ? -1 : 0;
}

/** Whether an event may belong to the beginning of a joined thread: its messages, and the starts of what is open. */
export function opening(e: Frame): boolean {
  return /^(RUN_STARTED|MESSAGES_SNAPSHOT|CUSTOM)$|^ACTIVITY_|_START(ED)?$/.test(e.type);
}

/** The beginning of a joined thread, in which a message that is being written has its text so far from its own events alone. */
export function whole<F extends Frame>(first: readonly F[]): F[] {
  const texts = new Map<string, string>();
  for (const e of first) for (const m of e.messages ?? []) if (typeof m.content === "string") texts.set(m.id, m.content);
  const written = new Set(first.filter((e) => e.type.endsWith("MESSAGE_START")).map((e) => e.messageId));
  return first.flatMap((e) => {
    if (e.messages) return [{ ...e, messages: e.messages.filter((m) => !written.has(m.id)) }];
    const delta = e.type.endsWith("MESSAGE_START") ? texts.get(e.messageId ?? "") : undefined;
    return delta ? [e, { type: e.type.replace("_START", "_CONTENT"), messageId: e.messageId, delta } as F] : [e];
  });
}
