/** What a filter of sessions may name besides words: a member of the API's query for each. */
const names = { by: "principal", via: "dialect", since: "since", until: "until" } as const;

/**
 * The query of the API for a filter that a person has typed: `by:ann`, `via:orbit`, `since:yesterday` and `until:2026-11-28` filter; all
 * other words are looked for in first messages. Days are those of the reader and are included whole. A value that cannot be read is a word.
 */
export function queryOf(text: string, now = new Date()): URLSearchParams {
  const query = new URLSearchParams();
  const words: string[] = [];
  for (const word of text.trim().split(/\s+/)) {
    const [, name = "", given = ""] = /^(by|via|since|until):(.+)$/.exec(word) ?? [];
    const value = name === "since" || name === "until" ? day(given, name === "until" ? 1 : 0, now) : given;
    if (name && value) query.set(names[name as keyof typeof names], value);
    else if (word) words.push(word);
  }
  if (words.length > 0) query.set("q", words.join(" "));
  return query;
}

/** Days by name, as the number of days since then. */
const days: ReadonlyMap<string, number> = new Map([
  ["today", 0],
  ["yesterday", 1],
]);

/** The beginning of a day, or of one later; undefined for another text than a day. */
function day(text: string, later: number, now: Date): string | undefined {
  const [, y, m, d] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  const back = days.get(text);
  if (back !== undefined) return new Date(now.getFullYear(), now.getMonth(), now.getDate() - back + later).toISOString();
  const at = new Date(Number(y), Number(m) - 1, Number(d));
  if (!y || at.getMonth() !== Number(m) - 1 || at.getDate() !== Number(d)) return undefined;
  return new Date(Number(y), Number(m) - 1, Number(d) + later).toISOString();
}
