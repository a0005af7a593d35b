import { useEffect, useState } from "preact/hooks";
import { client, epoch, refusedLogin } from "../app.ts";
import { shown } from "./live.ts";

interface Agent {
  name: string;
  online: boolean;
  /** Absent: Waggle's own agent, which is the model once more. */
  tenant?: string;
}

/** The names of the agents that are connected, as they are when the part or the tab is shown. */
export function useAgents(): readonly string[] {
  const [names, take] = useState<readonly string[]>([]);
  const at = `${epoch.value} ${shown.value}`;
  useEffect(() => {
    let over = false;
    client
      .call<{ agents: Agent[] }>("GET", "/api/v1/agents")
      .then((page) => {
        if (!over) take([...new Set(page.agents.filter((a) => a.online && a.tenant).map((a) => a.name))]);
      })
      .catch(refusedLogin); // without the list the model answers
    return () => {
      over = true;
    };
  }, [at]);
  return names;
}
