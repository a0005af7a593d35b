import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readSse } from "../../client/src/sse.js";
import { Model, up, type Waggle, within } from "../../testing/server.js";

// CopilotKit's real runtime with the published HttpAgent, and nothing of Waggle: what docs/PROTOCOL-AGUI.md says of it.
let waggle: Waggle;
let model: Model;

beforeAll(async () => {
  model = await Model.start((messages) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return { text: "It is written." };
    return last?.content === "write"
      ? { calls: [{ name: "workspace_write_file", args: { path: "a.txt", content: "x" } }] }
      : { text: "hello to you" };
  });
  waggle = await up("", { ...model.env, WAGGLE_TOOLS_BUILTIN_APPROVAL: "writes" });
});
const replicas: ChildProcess[] = [];
afterAll(async () => {
  for (const r of replicas) r.kill("SIGKILL");
  await waggle?.end();
  model?.end();
});

interface Event {
  type: string;
  delta?: string;
  messages?: { role: string; content: string }[];
  outcome?: { type: string; interrupts?: { id: string; reason: string }[] };
}

/** Starts a process of the runtime and returns its address. */
async function replica(client: string): Promise<string> {
  const script = fileURLToPath(new URL("replica.js", import.meta.url));
  const child = spawn(process.execPath, [script, client, `${waggle.url}/agui`], {
    env: { ...process.env, COPILOTKIT_TELEMETRY_DISABLED: "true" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  replicas.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const port = new Promise<string>((go) => lines.on("line", (l) => l.startsWith("port ") && go(l.slice(5))));
  return `http://127.0.0.1:${await within(port, "the runtime")}`;
}

async function ask(base: string, what: "run" | "connect", body: object): Promise<Event[]> {
  const r = await fetch(`${base}/api/agent/default/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ tools: [], context: [], state: {}, forwardedProps: {}, messages: [], ...body }),
  });
  expect(r.status).toBe(200);
  const all: Event[] = [];
  for await (const m of readSse(r.body as ReadableStream<Uint8Array>)) if (m.data) all.push(JSON.parse(m.data));
  return all;
}

const text = (all: Event[]) => all.map((e) => (e.type === "TEXT_MESSAGE_CONTENT" ? e.delta : "")).join("");
const said = (all: Event[]) => (all.findLast((e) => e.type === "MESSAGES_SNAPSHOT")?.messages ?? []).map((m) => m.content);
const user = (id: string, content: string) => [{ id, role: "user", content }];

describe.each([
  ["1.0.0", "@ag-ui/client"],
  ["0.0.59", "ag-ui-client-0"],
])("HttpAgent %s behind CopilotKit's runtime", (_, client) => {
  let first = "";
  let other = "";
  beforeAll(async () => {
    [first, other] = await Promise.all([replica(client), replica(client)]);
  });

  test("a chat, its history after a reload, and at another process", async () => {
    const threadId = crypto.randomUUID();
    const run = await ask(first, "run", { threadId, runId: "r1", messages: user("u1", "hi") });
    expect(text(run)).toBe("hello to you");
    expect(run.at(-1)?.type).toBe("RUN_FINISHED");
    const again = await ask(first, "connect", { threadId, runId: "c1" });
    expect(text(again)).toBe("hello to you"); // of the runtime's own memory
    expect(text(await ask(other, "connect", { threadId, runId: "c2" }))).toBe(""); // which no other process has
    const look = await ask(other, "run", { threadId, runId: crypto.randomUUID() }); // Waggle has it
    expect(said(look)).toEqual(["hi", "hello to you"]);
    expect(look.at(-1)?.type).toBe("RUN_FINISHED");
  });

  test("a tool waits for approval, which comes through another process", async () => {
    const threadId = crypto.randomUUID();
    const asked = await ask(first, "run", { threadId, runId: "r1", messages: user("u1", "write") });
    const end = asked.at(-1);
    expect(end?.outcome?.type).toBe("interrupt");
    const [question] = end?.outcome?.interrupts ?? [];
    expect(question?.reason).toBe("tool_call");
    const resume = [{ interruptId: question?.id, status: "resolved", payload: { approved: true } }];
    const rest = await ask(other, "run", { threadId, runId: "r2", messages: user("u1", "write"), resume });
    expect(text(rest)).toBe("It is written.");
    expect(rest.at(-1)?.outcome?.type).toBe("success");
  });
});
