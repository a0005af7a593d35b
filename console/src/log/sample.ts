import { type CanonicalEvent, WaggleApi } from "@waggle-dev/client";
import url from "./sample.json?url";

/** The session that was recorded for people who look around. The server does not know it: no session of its can have this id. */
export const sample = "~sample";

/** A recorded log, and the frames that clients of each protocol got for its events. */
interface Recording {
  events: CanonicalEvent[];
  frames: Record<string, Record<string, unknown[]>>;
}

let read: Promise<Recording> | undefined;

async function recording(): Promise<Recording> {
  read ??= fetch(url).then((r) => r.json() as Promise<Recording>);
  return read.catch((error) => {
    read = undefined;
    throw error;
  });
}

/** Answers requests for the recorded log as the server answers them for others. */
async function answer(input: RequestInfo | URL): Promise<Response> {
  const { pathname, searchParams: q } = new URL(String(input));
  const { events, frames } = await recording();
  const last = events.length;
  const limit = Number(q.get("limit") ?? 100);
  const after = Number(q.get("after") ?? 0);
  switch (pathname.split("/").at(-1)) {
    case "head":
      return Response.json({ first: 1, last });
    case "events": {
      const before = q.has("before") ? Number(q.get("before")) : undefined;
      const to = before === undefined ? Math.min(after + limit, last) : before - 1;
      const from = before === undefined ? after : Math.max(0, to - limit);
      const more = before === undefined ? to < last : from > 0;
      return Response.json({ events: events.slice(from, to), more, next: String(before === undefined ? to : from + 1) });
    }
    case "frames": {
      const seq = after + 1;
      return Response.json({ events: [{ seq, frames: frames[q.get("as") ?? ""]?.[seq] ?? [] }], more: false });
    }
  }
  return Response.json({ title: "NOT_FOUND", detail: "It is not a part of the recording.", status: 404 }, { status: 404 });
}

/** The client for a log: for the recorded one it makes no request. */
export function clientFor(id: string, client: WaggleApi): WaggleApi {
  return id === sample ? recorded : client;
}

const recorded = new WaggleApi({ url: location.origin, fetch: answer });

/** The recorded log as lines of JSON. */
export async function sampleLines(): Promise<string> {
  return (await recording()).events.map((e) => `${JSON.stringify(e)}\n`).join("");
}
