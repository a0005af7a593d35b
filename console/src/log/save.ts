import type { Reader } from "./reader.ts";
import { pageOf, pageSize, type Store } from "./store.ts";

/** All events of a log up to one of them, as lines of JSON. */
export async function save(reader: Reader, store: Store, until: number): Promise<Blob> {
  const parts: Blob[] = [];
  for (let from = reader.first; from <= until; ) {
    const to = Math.min(until, (pageOf(from) + 1) * pageSize);
    await reader.ensure(from, to, false);
    const lines: string[] = [];
    for (let seq = from; seq <= to; seq++) {
      const text = store.text(seq);
      if (text !== undefined) lines.push(`${text}\n`);
    }
    parts.push(new Blob(lines));
    from = to + 1;
  }
  return new Blob(parts, { type: "application/jsonl" });
}
