/** So many lines below the beginning of a table are looked at: the second one says how its columns are aligned. */
const most = 20;

/** How the columns of the first table in a text are aligned: for each column "start", "center" or "end". */
export function alignment(text: string): string[] {
  let from = 0;
  for (let n = 0; n < most && from < text.length; n++) {
    const to = text.indexOf("\n", from);
    const line = text.slice(from, to < 0 ? undefined : to).trim();
    from = to < 0 ? text.length : to + 1;
    const cells = line.replace(/^\|/, "").replace(/\|$/, "").split("|");
    if (!line.includes("-") || !cells.every((c) => /^:?-+:?$/.test(c.trim()))) continue;
    return cells.map((c) => {
      const cell = c.trim();
      if (!cell.endsWith(":")) return "start";
      return cell.startsWith(":") ? "center" : "end";
    });
  }
  return [];
}
