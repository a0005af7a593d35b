import { signal } from "@preact/signals";
import type { FramePage } from "@waggle-dev/client";
import { client } from "../app.ts";
import type { Kind } from "../log/protocol.ts";
import { clientFor } from "../log/sample.ts";

/** The protocols in which an event can be read, as the API and as people call them. */
export const protocols = {
  agui: "AG-UI 1.0",
  "agui-0": "AG-UI 0.0.x",
  orbit: "ORBIT",
  myagent: "MyAgent",
  "agent-team": "Agent teams",
  "asp-client": "Agent Swarm",
} as const;

export type Protocol = keyof typeof protocols;

/** The protocol in which events are shown; undefined: as they are stored. */
export const spoken = signal<Protocol | undefined>(undefined);

/** The frames that a client of the protocol gets for an event. */
export async function framesOf(kind: Kind, id: string, seq: number, as: Protocol, signal: AbortSignal): Promise<readonly unknown[]> {
  const q = new URLSearchParams({ as, after: String(seq - 1), limit: "1" });
  if (as === "orbit") q.set("deltas", "true"); // the pieces of a text, too
  const page = await clientFor(id, client).call<FramePage>("GET", `/api/v1/logs/${kind}/${encodeURIComponent(id)}/frames?${q}`, undefined, {
    signal,
  });
  return page.events.find((e) => e.seq === seq)?.frames ?? [];
}
