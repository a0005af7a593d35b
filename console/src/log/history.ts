import type { State } from "./states.ts";

/** A state after an event, made of all events from `base` on. */
export interface Frame {
  base: number;
  seq: number;
  state: State;
  /** Things are missing in it whose beginning is before its base: it is shown until there is a better one, and not kept. */
  loose?: boolean;
  /** The event after which it was read from the server, which may not be here. */
  place?: { seq: number; time: string; type: string };
}

/** How far apart the states are that are kept: a jump folds fewer events than that. */
export const apart = 1000;

/** A state of fewer events is not kept: a jump that went on from it would show little. */
export const fewest = 250;

/** So many bytes may the kept states take: each is little more than a list of what they have in common. */
const room = 24 << 20;
const bytesOfThing = 8;

/** States that are kept, so that any moment is near one. */
export class History {
  private frames: Frame[] = [];
  /** About how many bytes they take. */
  size = 0;

  constructor(private readonly most = room) {}

  /** Keeps a copy of a state of enough events. Of two states after the same event the one that began earlier says more. */
  keep(f: Frame): void {
    if (f.seq - f.base < fewest) return;
    const at = this.after(f.seq);
    const old = this.frames[at - 1];
    const kept = { ...f, state: f.state.fork() };
    if (old?.seq !== f.seq) this.frames.splice(at, 0, kept);
    else if (old.base <= f.base) return;
    else {
      this.size -= sizeOf(old);
      this.frames[at - 1] = kept;
    }
    this.size += sizeOf(kept);
    while (this.size > this.most && this.frames.length > 1) this.thin();
  }

  /** Drops each second state. */
  private thin(): void {
    this.frames = this.frames.filter((_, i) => i % 2 === 0);
    this.size = this.frames.reduce((sum, f) => sum + sizeOf(f), 0);
  }

  /** The state to go on from to an event: one that is near, and of these the one that began earliest. */
  best(seq: number): Frame | undefined {
    let best: Frame | undefined;
    for (let i = this.after(seq) - 1; i >= 0; i--) {
      const f = this.frames[i] as Frame;
      if (best && seq - f.seq >= apart) break;
      if (!best || f.base < best.base) best = f;
    }
    return best;
  }

  /** The place behind all states up to an event. */
  private after(seq: number): number {
    let low = 0;
    for (let high = this.frames.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.frames[middle] as Frame).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function sizeOf(f: Frame): number {
  return 1000 + f.state.size * bytesOfThing;
}
