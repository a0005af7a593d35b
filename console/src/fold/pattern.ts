/** Patterns that are longer, or take more steps, are left to the server: it tests them in linear time, a browser may not. */
const mostPattern = 500;
const mostSteps = 10_000_000;

/** The pattern as a browser tests the text with it; undefined: it might take long, or is none that a browser knows. */
export function tester(pattern: string, text: string): RegExp | undefined {
  if (pattern === "" || pattern.length > mostPattern || !(steps(pattern, text.length) <= mostSteps)) return undefined;
  try {
    return new RegExp(pattern, "u");
  } catch {
    return undefined;
  }
}

const tokens = /\\[1-9k]|\\.|\[(?:\\.|[^\]\\])*\]|\((?:\?:?)?|\)|\||[*+?]\??|\{\d*,?\d*\}\??|[\s\S]/gu;

/** A group of a pattern: its alternatives, and whether it matches in several ways. */
interface Group {
  ways: number;
  varies: boolean;
}

/**
 * A bound of the steps that a text of the length takes: the ways in which options are taken, times the places at which repetitions
 * end. Infinite for a repetition of what varies, and for a pattern that looks around or back.
 */
function steps(pattern: string, length: number): number {
  const open: Group[] = [{ ways: 1, varies: false }];
  let [ways, ends] = [1, pattern.startsWith("^") ? 0 : 1];
  let varied = false;
  const shut = (g: Group) => {
    ways *= g.ways;
    return g.varies || g.ways > 1;
  };
  for (const [token] of pattern.matchAll(tokens)) {
    const group = open.at(-1) as Group;
    const before = varied;
    varied = false;
    if (/^(\\[1-9k]|\(\?$)/.test(token)) return Number.POSITIVE_INFINITY;
    if (token.startsWith("(")) open.push({ ways: 1, varies: false });
    else if (token === ")") {
      open.pop();
      const above = open.at(-1);
      if (!above) return Number.POSITIVE_INFINITY;
      varied = shut(group);
      above.varies ||= varied;
    } else if (token === "|") group.ways++;
    else if (/^[*+?{]/.test(token)) {
      if (before) return Number.POSITIVE_INFINITY;
      if (/^\{\d{1,2}\}/.test(token)) continue;
      if (token.startsWith("?")) ways *= 2;
      else ends++;
      group.varies = true;
    }
  }
  for (const g of open) shut(g);
  return ways * Math.max(1, length) ** ends;
}
