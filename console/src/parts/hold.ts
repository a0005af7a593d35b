/** For how long a key is held until it approves, in milliseconds: longer than a key that is hit by accident stays down. */
export const holdMs = 400;

/** A key that acts once it has been held. */
export class Hold {
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins to hold, and ends with act unless release comes before. ended is called in both cases. */
  press(act: () => void, ended: () => void): void {
    this.release();
    const timer = setTimeout(() => {
      this.timer = undefined;
      this.ended = undefined;
      ended();
      act();
    }, holdMs);
    this.timer = timer;
    this.ended = ended;
  }

  release(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.ended?.();
    this.ended = undefined;
  }

  private ended: (() => void) | undefined;
}

/** What a key does to the questions of a page. */
export type AnswerKey =
  | { do: "focus"; card: HTMLElement } // the first press shows which question the next one is for
  | { do: "hold" | "press"; card: HTMLElement; button: HTMLButtonElement };

/** What y (approve) or n (reject) does: it answers the focused question and no other, and approving needs a hold. */
export function answerKey(key: "y" | "n", focused: Element | null, page: ParentNode): AnswerKey | undefined {
  const card = focused?.closest<HTMLElement>("[data-question]");
  if (!card) {
    const first = page.querySelector<HTMLElement>("main [data-question]");
    return first ? { do: "focus", card: first } : undefined;
  }
  const button = card.querySelector<HTMLButtonElement>(`[data-answer="${key === "y" ? "approve" : "reject"}"]`);
  if (!button || button.disabled) return undefined;
  return { do: key === "y" ? "hold" : "press", card, button };
}
