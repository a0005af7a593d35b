/** How many underscores a text ends with. */
export function trailing(text: string): number {
  let n = 0;
  while (n < text.length && text.charAt(text.length - 1 - n) === "_") n++;
  return n;
}

const runs = /_+/g;
const before = /[\p{L}\p{N}]$/u;
const after = /^[\p{L}\p{N}]/u;

/**
 * The underscores of a stretch of a text that stand between letters or digits, as the beginnings and ends of their runs: CommonMark has
 * no emphasis there. A run belongs to the stretch in which each of its underscores lies.
 */
export function withinWords(text: string, from: number, to: number): readonly (readonly [number, number])[] {
  const out: [number, number][] = [];
  runs.lastIndex = from;
  for (let run = runs.exec(text); run && run.index < to; run = runs.exec(text)) {
    let start = run.index;
    while (start > 0 && text.charAt(start - 1) === "_") start--; // a stretch may begin within a run
    const end = run.index + run[0].length;
    const within = before.test(text.slice(Math.max(0, start - 2), start)) && after.test(text.slice(end, end + 2));
    if (within) out.push([run.index, Math.min(end, to)]);
  }
  return out;
}
