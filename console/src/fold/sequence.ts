/** The gutter with the times. */
const gutter = 72;
/** A lifeline is at least and at most so far from the next one. */
const least = 116;
const most = 260;
/** A text is at least so wide, wherever its arrow ends. */
const text = 220;

/** The lifelines of a diagram: how far apart they are, where each one is, and how wide all are. */
export interface Lanes {
  gap: number;
  width: number;
  at(i: number): number;
}

/** Spreads lifelines over a width; those that have no room in it make it wider. */
export function lanes(n: number, width: number): Lanes {
  const gap = Math.max(least, Math.min(most, (width - gutter - 16) / Math.max(1, n)));
  return { gap, width: Math.max(width, gutter + n * gap), at: (i) => gutter + gap * (i + 0.5) };
}

/** An arrow between two lifelines: where it is drawn, and where its text is. */
export interface Span {
  left: number;
  width: number;
  turn: "right" | "left" | "self";
  /** Where its text begins, and how wide it may be. */
  text: number;
  room: number;
  /** Whether nothing of the arrow is in view. */
  away: boolean;
}

/** Puts an arrow between two places. Its text is in view as long as some of the arrow is. */
export function span(from: number, to: number, view: { left: number; width: number }): Span {
  const [left, right] = from < to ? [from, to] : [to, from];
  const turn = from === to ? "self" : from < to ? "right" : "left";
  const width = turn === "self" ? 28 : right - left;
  const edge = view.left + gutter;
  const begin = Math.max(left + 10, Math.min(edge, right - 10));
  const room = Math.max(text, right - begin - 10);
  const away = right < edge || left > view.left + view.width;
  return { left, width, turn, away, text: Math.min(begin, Math.max(edge, view.left + view.width - text - 8)), room };
}
