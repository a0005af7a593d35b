import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BaseEvent } from "@ag-ui/client";
import { WaggleAgent } from "@waggle-dev/client/agui";
import { afterEach, expect, test, vi } from "vitest";
import { within } from "../../testing/server.js";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const run = { threadId: "t", runId: "r" };
const started = { type: "RUN_STARTED", ...run, protocolVersion: "1.0" };
const finished = { type: "RUN_FINISHED", ...run, outcome: { type: "success" } };
const text = (type: string, more: object = {}) => ({ type, messageId: "m1", ...more });
const frame = (id: string, event: object) => `${id && `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`;
const beginning =
  frame("1", started) +
  frame("2", text("TEXT_MESSAGE_START", { role: "assistant" })) +
  frame("3", text("TEXT_MESSAGE_CONTENT", { delta: "Hello " }));

/** A gateway that answers the n-th request with the n-th answer; a text is a stream whose line breaks at its end. */
async function gateway(answers: (string | { status: number; headers?: Record<string, string>; code: string })[]) {
  const seen: { line: string; last: string | undefined }[] = [];
  const server = createServer((q, a) => {
    const last = q.headers["last-event-id"];
    seen.push({ line: `${q.method} ${q.url}`, last: last === undefined ? undefined : String(last) });
    const answer = answers.shift();
    if (typeof answer === "object") {
      a.writeHead(answer.status, { "Content-Type": "application/problem+json", ...answer.headers });
      a.end(JSON.stringify({ title: answer.code, status: answer.status, detail: answer.code }));
      return;
    }
    a.writeHead(200, { "Content-Type": "text/event-stream" });
    a.write(answer ?? "", () => a.socket?.destroy());
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  ends.push(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

async function watch(url: string): Promise<{ agent: WaggleAgent; events: BaseEvent[] }> {
  const agent = new WaggleAgent({ url, threadId: "t" });
  const events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  await within(agent.runAgent({ runId: "r" }), "the run");
  return { agent, events };
}

test("where the history has expired the agent joins as a newcomer, within the same run", async () => {
  const cold =
    frame("", started) +
    frame("", { type: "MESSAGES_SNAPSHOT", messages: [{ id: "m1", role: "assistant", content: "Hello wor" }] }) +
    frame("9", text("TEXT_MESSAGE_START", { role: "assistant" })) +
    frame("10", text("TEXT_MESSAGE_CONTENT", { delta: "ld" })) +
    frame("11", text("TEXT_MESSAGE_END")) +
    frame("12", finished);
  const { url, seen } = await gateway([beginning, { status: 410, code: "HISTORY_EXPIRED" }, cold]);
  const { agent, events } = await watch(url);
  expect(agent.messages).toMatchObject([{ id: "m1", role: "assistant", content: "Hello world" }]);
  expect(events.filter((e) => e.type === "RUN_STARTED")).toHaveLength(1);
  expect(seen.map((s) => [s.line, s.last])).toEqual([
    ["POST /agui", undefined],
    ["GET /agui/threads/t/runs/r", "3"],
    ["GET /agui/threads/t/runs/r", undefined],
  ]);
});

test("the agent waits as long as the server asks it to, and goes on behind its last frame", async () => {
  const rest = frame("4", text("TEXT_MESSAGE_CONTENT", { delta: "world" })) + frame("5", text("TEXT_MESSAGE_END")) + frame("6", finished);
  const { url, seen } = await gateway([beginning, { status: 503, code: "OVERLOADED", headers: { "Retry-After": "200" } }, rest]);
  const wait = globalThis.setTimeout;
  const pauses: number[] = [];
  vi.stubGlobal("setTimeout", (f: () => void, ms = 0) => {
    if (ms < 200_000 || ms > 300_000) return wait(f, ms);
    pauses.push(ms);
    return wait(f);
  });
  ends.push(() => vi.unstubAllGlobals());
  const { agent } = await watch(url);
  expect(pauses).toHaveLength(1);
  expect(agent.messages).toMatchObject([{ content: "Hello world" }]);
  expect(seen.map((s) => s.last)).toEqual([undefined, "3", "3"]);
});
