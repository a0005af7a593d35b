import { type CallOptions, type Http, query, until } from "./http.js";

/** A page of a list, and which entries are wanted. */
export interface ListOptions extends CallOptions {
  /** Entries of a page; the list goes on over all pages. */
  limit?: number;
  /** The cursor of a page. */
  before?: string;
}

/** A list over all its pages. `member` is that of a page with its entries. */
export async function* pages<T>(
  http: Http,
  path: string,
  member: string,
  f: ListOptions = {},
  whole: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const { signal, timeoutMs, ...filter } = f;
  const end = until(whole, { signal, timeoutMs });
  let before = filter.before;
  do {
    const page = await http.persist(
      () => http.json<{ more?: boolean; next?: string } & Record<string, T[]>>(path + query({ ...filter, before }), { signal: end }),
      end,
    );
    yield* page[member] ?? [];
    before = page.more ? page.next : undefined;
  } while (before);
}
