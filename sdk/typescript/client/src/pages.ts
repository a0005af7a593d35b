import { type Http, query } from "./http.js";

/** A page of a list, and which entries are wanted. */
export interface ListOptions {
  /** Entries of a page; the list goes on over all pages. */
  limit?: number;
  /** The cursor of a page. */
  before?: string;
  signal?: AbortSignal;
}

/** A list over all its pages. `member` is that of a page with its entries. */
export async function* pages<T>(
  http: Http,
  path: string,
  member: string,
  f: ListOptions = {},
  whole: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const { signal, ...filter } = f;
  const until = signal ?? whole;
  let before = filter.before;
  do {
    const page = await http.persist(
      () => http.json<{ more?: boolean; next?: string } & Record<string, T[]>>(path + query({ ...filter, before }), { signal: until }),
      until,
    );
    yield* page[member] ?? [];
    before = page.more ? page.next : undefined;
  } while (before);
}
