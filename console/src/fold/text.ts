/** What a reader does not see, or what changes the order of what they see, in texts that others have written. */
const hidden = /(?![\t\n\r])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** A text in which nothing is hidden: each such character is written as its code, as in ⟨U+202E⟩. */
export function plain(text: string): string {
  return text.replace(hidden, (c) => `⟨U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** A text for prose: without what is hidden. */
export function prose(text: string): string {
  return text.replace(hidden, "");
}

/** The first characters of a text, without half of one. */
export function head(text: string, most: number): string {
  return text.slice(0, (text.charCodeAt(most - 1) & 0xfc00) === 0xd800 ? most - 1 : most);
}

/** The beginning of a text. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${head(text, most)}…` : text;
}

/** A JSON value for people: indented, with nothing hidden. */
export function pretty(value: unknown): string {
  if (typeof value === "string") return plain(value);
  return plain(JSON.stringify(value, null, 2) ?? "");
}

/** Where a link leads, if a page may have it. */
export function target(href: string): URL | undefined {
  try {
    const u = new URL(href);
    return ["http:", "https:", "mailto:"].includes(u.protocol) ? u : undefined;
  } catch {
    return undefined;
  }
}
