import { createServer } from "node:http";
import { inspect } from "node:util";
import { type CanonicalEvent, type ConnectionState, type Question, WaggleClient } from "@waggle-dev/client";
import { WaggleAgent } from "@waggle-dev/client/agui";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { noSocket, up, type Waggle, within } from "../../testing/server.js";

let waggle: Waggle;
let client: WaggleClient;
const question = "which files are in the workspace, and what does notes.md say?";

beforeAll(async () => {
  waggle = await up();
  client = new WaggleClient({ url: waggle.url, WebSocket: noSocket });
});
afterAll(async () => {
  client.close();
  await waggle.end();
});

test("the events of a session whose first message is under way come", async () => {
  for (const session of [client.session(), client.session(`named-${Date.now()}`)]) {
    session.send("compute 6*7");
    const types: string[] = [];
    for await (const e of session.events()) {
      types.push(e.type);
      if (e.type === "run.completed") break;
    }
    expect(types[0]).toBe("session.created");
  }
  const nobody = client.session("never-used");
  await expect(nobody.events().next()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});

test("an answered question leaves the list at once, and comes back once if its answer is refused for what it is", async () => {
  const session = client.session();
  const run = session.send(question, { mode: "plan", confirmPlan: true });
  const lists: number[] = [];
  const asked = await within(new Promise<Question>((go) => session.onQuestions((open) => open[0] && go(open[0]))), "a question");
  session.onQuestions((open) => lists.push(open.length));
  const wrong = session.answer(asked, { approved: true, steps: [{ id: "", title: "" } as never] });
  expect(session.questions).toEqual([]);
  await expect(wrong).rejects.toThrow();
  expect(session.questions.map((q) => q.id)).toEqual([asked.id]);
  expect(lists).toEqual([1, 0, 1]);
  await session.answer(asked, true);
  expect((await within(run.result(), "the answer")).text).toContain("buy milk");
  expect(session.questions).toEqual([]);
});

test("the pieces of an answer are those of its text, each once", async () => {
  const run = client.session().send("what does notes.md say?");
  let text = "";
  for await (const d of run.deltas()) text = d.restarted ? d.text : text + d.text;
  expect(text).toBe((await run.result()).text);
});

test("the program carries out the calls of its own tools; facts and the language go along", async () => {
  const session = client.session();
  const seen: unknown[] = [];
  const events: CanonicalEvent[] = [];
  session.on((e) => events.push(e));
  const asked: Question[] = [];
  session.onQuestions((questions) => asked.push(...questions));
  const tools = {
    paint: {
      description: "Paints the page.",
      inputSchema: { type: "object", properties: { colour: { type: "string" } } },
      run: (args: { colour: string }) => {
        seen.push(args);
        if (args.colour === "none") throw new Error("no such colour");
        return { painted: args.colour };
      },
    },
  };
  const context = [{ description: "the colour of the sky", value: "blue" }];
  await within(session.send("say hello", { context, language: "de" }).result(), "the greeting");
  const painted = await within(session.send('use paint {"colour":"red"}', { tools }).result(), "the answer");
  expect(painted.text).toContain('{"painted":"red"}');
  const failed = await within(session.send('use paint {"colour":"none"}', { tools }).result(), "the failure");
  expect(failed.text).toContain("no such colour");
  expect(seen).toEqual([{ colour: "red" }, { colour: "none" }]);
  expect(asked).toEqual([]); // people are not asked
  const created = events.find((e) => e.type === "session.created");
  expect(created?.data).toMatchObject({ language: "de" });
  const received = events.find((e) => e.type === "message.received");
  expect(received?.data).toMatchObject({ facts: context });
});

test("calls end with their time and their signal, and say why nothing comes while the server is away", async () => {
  const away = new WaggleClient({ url: "http://127.0.0.1:9" });
  await expect(away.me({ timeoutMs: 50 })).rejects.toMatchObject({ name: "TimeoutError" });
  const session = away.session();
  const told = new Promise<ConnectionState>((go) => session.onConnection((s) => s.error !== undefined && go(s)));
  const run = session.send("hello", { timeoutMs: 300 });
  expect((await within(told, "the reason")).error).toMatchObject({ code: "UNREACHABLE" });
  await expect(run.result()).rejects.toMatchObject({ name: "TimeoutError" });
  const leave = new AbortController();
  const shown = session.show({ signal: leave.signal });
  leave.abort(new Error("enough"));
  await expect(shown).rejects.toThrow("enough");
  const log = away.session("s1");
  const state = await within(new Promise<ConnectionState>((go) => log.onConnection((s) => s.error !== undefined && go(s))), "the reason");
  expect(state).toMatchObject({ connected: false, ended: false, error: { code: "UNREACHABLE" } });
  away.close();
});

test("nothing that is printed has the key", () => {
  const token = "key-that-nobody-sees";
  const c = new WaggleClient({ url: waggle.url, token });
  const agent = new WaggleAgent({ url: waggle.url, token, threadId: "t" });
  for (const thing of [c, c.session(), c.team("t"), c.task("t"), agent, agent.clone()]) {
    expect(inspect(thing, { depth: 20 })).not.toContain(token);
    expect(
      JSON.stringify(thing, (_, v) => (typeof v === "object" && v !== null && v instanceof AbortSignal ? undefined : v)) ?? "",
    ).not.toContain(token);
  }
  c.close();
  expect(() => new WaggleClient({} as never)).toThrow("url names no gateway");
});

test("WaggleAgent reaches agents of the swarm and teams", async () => {
  const asked: string[] = [];
  const server = createServer((r, answer) => {
    asked.push(`${r.method} ${r.url}`);
    answer.writeHead(404, { "Content-Type": "application/problem+json" }).end('{"title":"AGENT_NOT_FOUND","status":404,"detail":"no"}');
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  for (const of of [{ agent: "a b" }, { team: "t1" }, {}]) {
    const agent = new WaggleAgent({ url, threadId: "x", ...of }).clone();
    await agent.runAgent({ runId: "r" }).catch(() => {});
    await agent.stop().catch(() => {});
  }
  expect(asked).toEqual([
    "POST /agui/agents/a%20b",
    "POST /agui/agents/a%20b/threads/x/cancel",
    "POST /agui/teams/t1",
    "POST /agui/teams/t1/threads/x/cancel",
    "POST /agui",
    "POST /agui/threads/x/cancel",
  ]);
  expect(() => new WaggleAgent({ url, agent: "a", team: "t" })).toThrow("exclude each other");
  server.close();
});

test("the events of a task end with it, and a message is its text", async () => {
  const { defineAgent } = await import("@waggle-dev/client/swarm");
  const agent = await defineAgent({ name: "echo-of-messages", capabilities: ["echo"], run: (task) => `${task.text.toUpperCase()}!` }).serve(
    {
      url: waggle.url,
      WebSocket,
    },
  );
  const task = await client.tasks.create({ agent: "echo-of-messages", data: { content: "hello" } });
  const types: string[] = [];
  for await (const e of task.events()) types.push(e.type);
  expect(types.at(-1)).toBe("task.finished");
  expect((await task.result()).result).toEqual("HELLO!");
  await agent.stop?.();
});

test("events() throws the reason of its signal, and ends with close()", async () => {
  const session = client.session();
  await within(session.send("hello").result(), "the answer");
  const leave = new AbortController();
  const seen: string[] = [];
  const reading = (async () => {
    for await (const e of session.events({ signal: leave.signal })) {
      seen.push(e.type);
      if (e.type === "run.completed") leave.abort(new Error("enough"));
    }
  })();
  await expect(within(reading, "the end")).rejects.toThrow("enough");
  expect(seen.at(-1)).toBe("run.completed");
  await expect(session.events({ signal: AbortSignal.abort(new Error("before")) }).next()).rejects.toThrow("before");
});

test("errors name options as the program does, and positions are given in one way", async () => {
  const refused = client.session().send("hello", { mode: "dance" as never });
  await expect(refused.result()).rejects.toMatchObject({ code: "INVALID_FIELD", field: "mode", message: expect.stringMatching(/^mode /) });
  for (const log of [client.session("s", { after: 7 }), client.team("t", { after: 7 }), client.task("t", { after: 7 })]) {
    expect(log.seq).toBe(7);
    log.close();
  }
});
