import { type Signal, signal } from "@preact/signals";
import type { Margin } from "../fold/blocks.ts";
import type { Growth, Shown, TalkPatch } from "../log/protocol.ts";

/** What a page shows of a conversation besides what is said in it. */
export type TalkState = Pick<TalkPatch, "of" | "earlier" | "later" | "partial" | "questions" | "active" | "senders"> & Margin;

/** The window over a conversation. Each thing in it has a signal of its own: a text that grows renders nothing else. */
export class Conversation {
  /** The keys of what is in the window, in order; undefined until something is known. */
  readonly keys = signal<readonly string[] | undefined>(undefined);
  readonly state = signal<TalkState>({
    of: "",
    earlier: false,
    later: false,
    partial: false,
    questions: [],
    active: 0,
    steps: {},
    notes: {},
    senders: {},
  });
  private readonly items = new Map<string, Signal<Shown>>();

  /** The thing that has a key of the window. */
  item<T extends Shown>(key: string): Signal<T> {
    return this.items.get(key) as unknown as Signal<T>;
  }

  take(p: TalkPatch): void {
    for (const [key, item] of p.set) {
      const known = this.items.get(key);
      if (known) known.value = item;
      else this.items.set(key, signal(item));
    }
    for (const g of p.grow) {
      const known = this.items.get(g.key);
      if (known && "done" in known.value) known.value = grown(known.value, g);
    }
    const { keys, set: _, grow: __, ...state } = p;
    this.state.value = { ...this.state.peek(), ...state };
    if (keys) {
      this.keys.value = keys;
      const there = new Set(keys);
      for (const key of this.items.keys()) if (!there.has(key)) this.items.delete(key);
    } else this.keys.value ??= [];
  }
}

/** A text with what has been added to it. */
function grown<T extends Extract<Shown, { done: boolean }>>(old: T, g: Growth): T {
  const more = g.reasoning ? { reasoning: (old.reasoning ?? "") + g.reasoning } : {};
  return { ...old, text: old.text + g.text, done: g.done, ...more, ...(g.thought ? { thought: g.thought } : {}) };
}
