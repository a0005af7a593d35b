import { signal } from "@preact/signals";

/** How a session is shown. */
export type SessionView = "talk" | "waterfall" | "log";

/** What the address of the page names. */
export type Route =
  | { room: "playground" }
  | { room: "sessions"; id?: string; view: SessionView; at?: number; q: string; state: string }
  | { room: "questions"; pick?: string }
  | { room: "swarm" }
  | { room: "installation" }
  | { room: "nowhere" };

const views: readonly string[] = ["talk", "waterfall", "log"];

/** Reads an address. Members that it does not know, or whose values make no sense, are left out. */
export function parse(path: string, query: string): Route {
  const q = new URLSearchParams(query);
  const [room = "", id, more] = path.split("/").slice(1);
  if (more !== undefined) return { room: "nowhere" };
  if (id !== undefined && room !== "sessions") return { room: "nowhere" };
  switch (room) {
    case "":
      return { room: "playground" };
    case "sessions": {
      const at = Number(q.get("at"));
      const view = q.get("view") ?? "";
      return {
        room,
        ...(id ? { id: decode(id) } : {}),
        view: (views.includes(view) ? view : "talk") as SessionView,
        ...(Number.isSafeInteger(at) && at > 0 ? { at } : {}),
        q: q.get("q") ?? "",
        state: q.get("state") ?? "",
      };
    }
    case "questions": {
      const pick = q.get("pick");
      return { room, ...(pick ? { pick } : {}) };
    }
    case "swarm":
    case "installation":
      return { room };
  }
  return { room: "nowhere" };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Writes an address that `parse` reads as the same route. */
export function format(r: Route): string {
  const q = new URLSearchParams();
  const put = (name: string, value: string | number | undefined) => value !== undefined && value !== "" && q.set(name, String(value));
  let path = "/";
  if (r.room === "sessions") {
    path = r.id === undefined ? "/sessions" : `/sessions/${encodeURIComponent(r.id)}`;
    if (r.view !== "talk") put("view", r.view);
    put("at", r.at);
    put("state", r.state);
    put("q", r.q);
  } else if (r.room === "questions") {
    path = "/questions";
    put("pick", r.pick);
  } else if (r.room !== "playground" && r.room !== "nowhere") path = `/${r.room}`;
  const text = q.toString();
  return path + (text && `?${text}`);
}

/** What the page shows. */
export const route = signal<Route>(parse(location.pathname, location.search));

addEventListener("popstate", () => {
  route.value = parse(location.pathname, location.search);
});

/** Shows something else. What was opened gets a place in the browser's history, a change of a view does not. */
export function go(r: Route, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", format(r));
  else history.replaceState(null, "", format(r));
  route.value = r;
}

/** The room of a list or a page without further choices. */
export function room(name: "playground" | "sessions" | "questions" | "swarm" | "installation"): Route {
  return name === "sessions" ? { room: name, view: "talk", q: "", state: "" } : { room: name };
}
