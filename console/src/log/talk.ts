import type { Side } from "../fold/arrows.ts";
import type { Margin } from "../fold/blocks.ts";
import { marginOf } from "./margin.ts";
import type { Asked, Growth, Shown, TalkPatch } from "./protocol.ts";
import type { Said } from "./states.ts";
import { Window } from "./window.ts";

/** What is shown of a conversation, and what the page has of that already. */
export class Talk {
  readonly window: Window;
  private sent = new Map<string, Shown>();
  private keys: readonly string[] = [];
  private rest: string | undefined;
  private margin = { steps: "", notes: "" };

  constructor(
    readonly of: string,
    key: (item: Shown) => string,
  ) {
    this.window = new Window(key);
  }

  /** What has changed for the page; undefined: nothing. `older` says that something stands before all items. */
  patch(s: Said, older: boolean, partial: boolean): TalkPatch | undefined {
    const { items } = s;
    const { from, to } = this.window.over(items);
    const now = new Map<string, Shown>();
    const set: [string, Shown][] = [];
    const grow: Growth[] = [];
    for (let i = from; i < to; i++) {
      const item = items[i] as Shown;
      const key = unique(s.key(item), now);
      now.set(key, item);
      const old = this.sent.get(key);
      if (old === item) continue;
      const more = old && growth(key, old, item);
      if (more) grow.push(more);
      else set.push([key, item]);
    }
    const keys = [...now.keys()];
    const moved = keys.length !== this.keys.length || keys.some((k, i) => k !== this.keys[i]);
    const patch: TalkPatch = {
      of: this.of,
      ...(moved ? { keys } : {}),
      set,
      grow,
      earlier: from > 0 || older,
      later: to < items.length,
      partial,
      questions: s.questions,
      active: s.active,
      ...this.changed(marginOf(s, from, to)),
      senders: sendersOf(s, from, to),
    };
    const rest = JSON.stringify([patch.earlier, patch.later, partial, patch.questions.map(idOf), patch.active, patch.senders]);
    if (!moved && set.length === 0 && grow.length === 0 && rest === this.rest && !patch.steps && !patch.notes) return undefined;
    this.sent = now;
    this.keys = keys;
    this.rest = rest;
    return patch;
  }

  /** What the page does not have of a margin. */
  private changed(m: Margin): Partial<Margin> {
    const [steps, notes] = [JSON.stringify(m.steps), JSON.stringify(m.notes)];
    const { margin } = this;
    this.margin = { steps, notes };
    return { ...(steps === margin.steps ? {} : { steps: m.steps }), ...(notes === margin.notes ? {} : { notes: m.notes }) };
  }
}

const idOf = (a: Asked) => [a.question.id, a.question.run, a.ends];

function unique(key: string, taken: ReadonlyMap<string, unknown>): string {
  if (!taken.has(key)) return key;
  let n = 2;
  while (taken.has(`${key} ${n}`)) n++;
  return `${key} ${n}`;
}

/** What has been added to a text and its reasoning, if nothing else of the item has changed but that it is complete. */
function growth(key: string, old: Shown, item: Shown): Growth | undefined {
  if (!("done" in old) || !("done" in item) || !item.text.startsWith(old.text)) return undefined;
  const [before, after] = [old.reasoning ?? "", item.reasoning ?? ""];
  if (!after.startsWith(before)) return undefined;
  const rest = (s: Shown) => ({ ...s, text: "", done: false, reasoning: "", thought: undefined }) as Record<string, unknown>;
  const [was, is] = [rest(old), rest(item)];
  for (const name of new Set([...Object.keys(was), ...Object.keys(is)])) if (was[name] !== is[name]) return undefined;
  const grown: Growth = { key, text: item.text.slice(old.text.length), done: item.done };
  if (after.length > before.length) grown.reasoning = after.slice(before.length);
  if ("thought" in item && item.thought) grown.thought = item.thought;
  return grown;
}

/** Who sent the messages in the window, where that was another member or the board. */
function sendersOf(s: Said, from: number, to: number): Record<string, Side> {
  const senders: Record<string, Side> = {};
  for (const item of s.sender ? s.items.slice(from, to) : []) {
    const sender = "kind" in item && item.kind === "user" ? s.sender?.(item.id) : undefined;
    if (sender && sender !== "people") senders[item.id] = sender;
  }
  return senders;
}
