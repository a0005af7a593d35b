import { CopilotRuntime, createCopilotEndpoint } from "@copilotkit/runtime/v2";
import { WaggleAgent } from "@waggle-dev/client/agui";
import { WaggleRunner } from "@waggle-dev/copilotkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readSse } from "../../client/src/sse.js";
import { Model, up, type Waggle, within } from "../../testing/server.js";

process.env["COPILOTKIT_TELEMETRY_DISABLED"] = "true";

let waggle: Waggle;
let model: Model;
const words = Array.from({ length: 20 }, (_, i) => `word${i} `).join("");
const long = "word ".repeat(2000); // some words for each moment until it is stopped

beforeAll(async () => {
  model = await Model.start((messages) => ({
    text: messages.at(-1)?.content === "go on" ? long : words,
    pauseMs: 30,
  }));
  waggle = await up("", model.env);
});
afterAll(async () => {
  await waggle?.end();
  model?.end();
});

interface Event {
  type: string;
  message?: string;
  code?: string;
  delta?: string;
  messages?: { role: string; content: string }[];
}

/** One replica of CopilotKit's real runtime. */
function runtime() {
  const where = { url: waggle.url };
  return createCopilotEndpoint({
    runtime: new CopilotRuntime({ agents: { default: new WaggleAgent(where) as never }, runner: new WaggleRunner(where) }),
    basePath: "/api",
  });
}

type App = ReturnType<typeof runtime>;

function ask(
  app: App,
  what: "run" | "connect",
  threadId: string,
  runId: string,
  text?: string,
  more?: object,
  props = {},
): Promise<Response> {
  const messages = text === undefined ? [] : [{ id: `m-${runId}`, role: "user", content: text }];
  const body = JSON.stringify({ threadId, runId, messages, tools: [], context: [], state: {}, forwardedProps: props });
  return Promise.resolve(
    app.request(`/api/agent/default/${what}`, { method: "POST", headers: { "Content-Type": "application/json", ...more }, body }),
  );
}

async function* events(r: Response): AsyncGenerator<Event> {
  expect(r.status).toBe(200);
  for await (const m of readSse(r.body as ReadableStream<Uint8Array>)) if (m.data) yield JSON.parse(m.data);
}

test("CopilotKit's runtime runs a thread of Waggle, and another replica joins it in the middle", async () => {
  const thread = crypto.randomUUID();
  const first = runtime();
  const seen: Event[] = [];
  let joined: Promise<Event[]> | undefined;
  for await (const e of events(await ask(first, "run", thread, "r1", "words"))) {
    seen.push(e);
    if (e.type === "TEXT_MESSAGE_CONTENT") {
      joined ??= (async () => {
        const all: Event[] = [];
        for await (const x of events(await ask(runtime(), "connect", thread, "c1"))) all.push(x);
        return all;
      })();
    }
  }
  const text = (list: Event[]) => list.map((e) => (e.type === "TEXT_MESSAGE_CONTENT" ? e.delta : "")).join("");
  expect(text(seen)).toBe(words);
  expect(seen.at(-1)?.type).toBe("RUN_FINISHED");
  const other = await within(joined as Promise<Event[]>, "the other replica");
  const start = other.find((e) => e.type === "MESSAGES_SNAPSHOT")?.messages ?? [];
  expect(
    start
      .filter((m) => m.role === "assistant")
      .map((m) => m.content)
      .join("") + text(other),
  ).toBe(words);
  expect(model.requests).toBe(1);
});

test("a run goes on without its reader, comes twice to nothing, and is stopped by the runner", async () => {
  const runner = new WaggleRunner({ url: waggle.url });
  const thread = crypto.randomUUID();
  expect(await runner.isRunning({ threadId: thread })).toBe(false);
  expect(await runner.stop({ threadId: thread })).toBe(false);
  const before = model.requests;
  const input = {
    threadId: thread,
    runId: "r1",
    messages: [{ id: "m-r1", role: "user", content: "go on" }],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  };
  const agent = new WaggleAgent({ url: waggle.url }) as never;
  await within(
    new Promise<void>((go) => {
      const reader = runner.run({ threadId: thread, agent, input: input as never }).subscribe(() => {
        reader.unsubscribe();
        go();
      });
    }),
    "the first event",
  );
  expect(await runner.isRunning({ threadId: thread })).toBe(true);
  const again: Event[] = [];
  for await (const e of events(await ask(runtime(), "run", thread, "r1", "go on"))) {
    if (e.type === "TEXT_MESSAGE_CONTENT" && again.length === 0) {
      again.push(e);
      expect(await runner.stop({ threadId: thread })).toBe(true);
    }
  }
  expect(again).toHaveLength(1);
  expect(model.requests).toBe(before + 1);
  await expect.poll(() => runner.isRunning({ threadId: thread }), { timeout: 30_000 }).toBe(false);
});

test("a page is told what the server refuses", async () => {
  const seen: Event[] = [];
  const r = await ask(runtime(), "run", crypto.randomUUID(), "r1", "words", {}, { waggle: { mode: "dance" } });
  for await (const e of events(r)) seen.push(e);
  expect(seen.map((e) => [e.type, e.code])).toEqual([["RUN_ERROR", "INVALID_FIELD"]]);
  expect(seen[0]?.message).toContain("mode");
});

test("a page that follows a thread gets all later runs", async () => {
  const thread = crypto.randomUUID();
  const app = runtime();
  const run = async (id: string) => {
    const all: Event[] = [];
    for await (const e of events(await ask(app, "run", thread, id, "words"))) all.push(e);
    return all.at(-1)?.type;
  };
  expect(await run("r1")).toBe("RUN_FINISHED");
  const seen: (Event & { runId?: string })[] = [];
  void (async () => {
    const more = { "x-waggle-follow": "1" };
    for await (const e of events(await ask(runtime(), "connect", thread, "f", undefined, more))) seen.push(e);
  })().catch(() => {}); // the server ends with the test
  await expect.poll(() => seen.length, { timeout: 30_000 }).toBeGreaterThan(0);
  for (const id of ["r2", "r3"]) expect(await run(id)).toBe("RUN_FINISHED");
  await expect.poll(() => seen.filter((e) => e.type === "RUN_FINISHED").length, { timeout: 30_000 }).toBe(3);
  expect(seen.filter((e) => e.type === "RUN_STARTED").map((e) => e.runId)).toEqual(["r1", "r2", "r3"]);
  expect(seen.map((e) => (e.type === "TEXT_MESSAGE_CONTENT" ? e.delta : "")).join("")).toBe(words + words);
});
