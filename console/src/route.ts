import { signal } from "@preact/signals";

/** The path to which a sign-in provider sends people back. */
export const callback = "/login/callback";

/** How a session is shown. */
export type SessionView = "talk" | "trace" | "log";

/** How a team is shown. */
export type TeamView = "tree" | "messages" | "board" | "log";

/** What is shown of the installation. */
export type InstallationTab = "health" | "queues" | "connections" | "dead" | "rates" | "quotas" | "audit" | "config" | "versions";

/** What is shown of the swarm. */
export type SwarmTab = "agents" | "providers" | "tools" | "tasks";

/** How a task is shown. */
export type TaskView = "work" | "trace" | "log";

/** A tool of a provider, and the call of it that is shown. */
export interface ToolPlace {
  provider: string;
  name: string;
  kind: string;
  call: string;
}

/** Which audit records are shown: all with empty members. The entity also filters connections. */
export interface AuditFilter {
  principal: string;
  action: string;
  entity: string;
}

/** A run of a session, up to an event or to its end. Without a run it is the newest one. */
export interface RunRef {
  session: string;
  run: string;
  at?: number;
}

/** What the address of the page names. */
export type Route =
  | { room: "playground" }
  | { room: "sessions"; id?: string; view: SessionView; at?: number; pick?: number; q: string; state: string }
  | { room: "teams"; id?: string; view: TeamView; member?: string; at?: number }
  | { room: "compare"; a: RunRef | undefined; b: RunRef | undefined }
  | { room: "questions" }
  | { room: "swarm"; tab: SwarmTab; tool?: ToolPlace }
  | { room: "task"; id: string; view: TaskView; at?: number }
  | ({ room: "installation"; tab: InstallationTab; role?: string; instance?: string; lagging?: true } & AuditFilter)
  | { room: "nowhere" };

/** The order of the views of a session. */
export const sessionViews: readonly SessionView[] = ["talk", "trace", "log"];

/** The order of the views of a team. */
export const teamViews: readonly TeamView[] = ["tree", "messages", "board", "log"];

/** All tabs of the installation. */
export const installationTabs: readonly InstallationTab[] = [
  "health",
  "queues",
  "connections",
  "dead",
  "rates",
  "quotas",
  "audit",
  "config",
  "versions",
];

/** All tabs of the swarm. */
export const swarmTabs: readonly SwarmTab[] = ["agents", "providers", "tools", "tasks"];

/** The order of the views of a task. */
export const taskViews: readonly TaskView[] = ["work", "trace", "log"];

/** Reads an address. Members that it does not know, or whose values make no sense, are left out. */
export function parse(path: string, query: string): Route {
  const q = new URLSearchParams(query);
  const [room = "", id, more, last, ...rest] = path.split("/").slice(1);
  if (room === "swarm") return rest.length > 0 ? { room: "nowhere" } : swarm(id, more, last, q);
  if (more !== undefined) return { room: "nowhere" };
  if (id !== undefined && room !== "sessions" && room !== "teams" && room !== "installation") return { room: "nowhere" };
  switch (room) {
    case "":
      return { room: "playground" };
    case "teams": {
      const view = teamViews.find((v) => v === q.get("view")) ?? "tree";
      const member = q.get("member");
      return { room, ...(id ? { id: decode(id) } : {}), view, ...(member ? { member } : {}), ...atOf(q) };
    }
    case "sessions": {
      return {
        room,
        ...(id ? { id: decode(id) } : {}),
        view: sessionViews.find((v) => v === q.get("view")) ?? "talk",
        ...atOf(q),
        ...atOf(q, "pick"),
        q: q.get("q") ?? "",
        state: q.get("state") ?? "",
      };
    }
    case "compare":
      return { room, a: refOf(q.get("a")), b: refOf(q.get("b")) };
    case "questions":
      return { room };
    case "installation": {
      const tab = (id || "health") as InstallationTab;
      if (!installationTabs.includes(tab)) break;
      const of = (name: keyof AuditFilter) => (tab === "audit" ? (q.get(name) ?? "") : "");
      const part = (name: "role" | "instance") => (tab === "versions" && q.get(name) ? { [name]: q.get(name) as string } : {});
      const entity = tab === "audit" || tab === "connections" ? (q.get("entity") ?? "") : "";
      const lagging = tab === "connections" && q.get("lagging") === "true" ? { lagging: true as const } : {};
      return { room, tab, principal: of("principal"), action: of("action"), entity, ...part("role"), ...part("instance"), ...lagging };
    }
  }
  return { room: "nowhere" };
}

/** Reads the address of a tab of the swarm, a tool, or a task. */
function swarm(tab: string | undefined, id: string | undefined, tool: string | undefined, q: URLSearchParams): Route {
  const of = (tab || "agents") as SwarmTab;
  if (!swarmTabs.includes(of)) return { room: "nowhere" };
  if (!id) return { room: "swarm", tab: of };
  if (of === "tools" && tool) {
    const kind = q.get("kind") === "service" ? "service" : "mcp";
    return { room: "swarm", tab: of, tool: { provider: decode(id), name: decode(tool), kind, call: q.get("call") ?? "" } };
  }
  if (of !== "tasks" || tool !== undefined) return { room: "nowhere" };
  const view = (q.get("view") ?? "work") as TaskView;
  return { room: "task", id: decode(id), view: taskViews.includes(view) ? view : "work", ...atOf(q) };
}

/** Reads "session/ID/RUN@SEQ", in which the run and the event may be missing. */
function refOf(text: string | null): RunRef | undefined {
  const [, session = "", run = "", at] = /^session\/([^/@]+)(?:\/([^/@]*))?(?:@(\d+))?$/.exec(text ?? "") ?? [];
  if (session === "") return undefined;
  const seq = Number(at);
  return { session: decode(session), run: decode(run), ...(Number.isSafeInteger(seq) && seq > 0 ? { at: seq } : {}) };
}

function writeRef(r: RunRef | undefined): string {
  if (!r) return "";
  const run = r.run === "" ? "" : `/${encodeURIComponent(r.run)}`;
  return `session/${encodeURIComponent(r.session)}${run}${r.at === undefined ? "" : `@${r.at}`}`;
}

/** The event of a log that an address names: the moment that is shown, or the beginning of what is picked. */
function atOf<N extends "at" | "pick" = "at">(q: URLSearchParams, name = "at" as N): { [K in N]?: number } {
  const seq = Number(q.get(name));
  return (Number.isSafeInteger(seq) && seq > 0 ? { [name]: seq } : {}) as { [K in N]?: number };
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
    put("pick", r.pick);
    put("state", r.state);
    put("q", r.q);
  } else if (r.room === "teams") {
    path = r.id === undefined ? "/teams" : `/teams/${encodeURIComponent(r.id)}`;
    if (r.view !== "tree") put("view", r.view);
    put("member", r.member);
    put("at", r.at);
  } else if (r.room === "compare") {
    path = "/compare";
    put("a", writeRef(r.a));
    put("b", writeRef(r.b));
  } else if (r.room === "installation") {
    path = `/installation/${r.tab}`;
    put("principal", r.principal);
    put("action", r.action);
    put("entity", r.entity);
    put("role", r.role);
    put("instance", r.instance);
    put("lagging", r.lagging && "true");
  } else if (r.room === "task") {
    path = `/swarm/tasks/${encodeURIComponent(r.id)}`;
    if (r.view !== "work") put("view", r.view);
    put("at", r.at);
  } else if (r.room === "swarm") {
    path = r.tab === "agents" && !r.tool ? "/swarm" : `/swarm/${r.tab}`;
    if (r.tool) {
      path += `/${encodeURIComponent(r.tool.provider)}/${encodeURIComponent(r.tool.name)}`;
      put("kind", r.tool.kind === "mcp" ? "" : r.tool.kind);
      put("call", r.tool.call);
    }
  } else if (r.room !== "playground" && r.room !== "nowhere") path = `/${r.room}`;
  const text = q.toString();
  return path + (text && `?${text}`);
}

/** What the page shows. */
export const route = signal<Route>(parse(location.pathname, location.search));

// An address that names a moment that cannot be says what is shown instead.
if (new URLSearchParams(location.search).has("at") && !/[?&]at=/.test(format(route.value)) && route.value.room !== "nowhere")
  history.replaceState(null, "", format(route.value));

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
export function room(name: Exclude<Route["room"], "nowhere" | "task">): Route {
  if (name === "swarm") return { room: name, tab: "agents" };
  if (name === "sessions") return { room: name, view: "talk", q: "", state: "" };
  if (name === "installation") return { room: name, tab: "health", principal: "", action: "", entity: "" };
  if (name === "compare") return { room: name, a: undefined, b: undefined };
  return name === "teams" ? { room: name, view: "tree" } : { room: name };
}

/** The choice that is `by` places after the present one; behind the last comes the first. */
export function after<T>(all: readonly T[], now: T, by: number): T {
  return all[(all.indexOf(now) + by + all.length) % all.length] as T;
}
