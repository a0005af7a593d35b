import type { Route } from "../route.ts";

const tabs: Readonly<Record<string, string>> = {
  health: "status",
  queues: "queues",
  connections: "connections",
  dead: "dead-letters",
  rates: "rates",
  quotas: "quotas",
  config: "config",
  versions: "installation",
  agents: "agents",
  providers: "services",
  tools: "tools",
  tasks: "tasks",
};

/** The request whose answer a page shows, below /api/v1/; undefined: it shows several, or none. */
export function apiOf(r: Route): string | undefined {
  const id = "id" in r && r.id !== undefined ? encodeURIComponent(r.id) : undefined;
  const asked = (members: Readonly<Record<string, string>>) => {
    const q = new URLSearchParams(Object.entries(members).filter(([, v]) => v !== "")).toString();
    return q && `?${q}`;
  };
  switch (r.room) {
    case "sessions":
      return id === undefined ? `sessions${asked({ state: r.state, q: r.q })}` : `logs/session/${id}/events`;
    case "questions":
      return "questions";
    case "teams":
      return id === undefined ? "teams" : r.view === "log" ? `logs/team/${id}/events` : `teams/${id}`;
    case "task":
      return r.view === "log" ? `logs/task/${id}/events` : `tasks/${id}`;
    case "swarm":
      return r.tool ? undefined : tabs[r.tab];
    case "installation":
      return r.tab === "audit" ? `audit${asked({ principal: r.principal, action: r.action, entity: r.entity })}` : tabs[r.tab];
  }
  return undefined;
}

/** A command of a shell that makes the request. The token is in the shell's environment and nowhere else. */
export function curlOf(origin: string, path: string, login: boolean): string {
  const header = login ? ' -H "Authorization: Bearer $WAGGLE_TOKEN"' : "";
  return `curl -fsS${header} '${`${origin}/api/v1/${path}`.replaceAll("'", "'\\''")}'`;
}
