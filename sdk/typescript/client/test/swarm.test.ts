import { WaggleClient, WaggleError } from "@waggle-dev/client";
import { defineAgent, defineService, defineTool } from "@waggle-dev/client/swarm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { noSocket, up, type Waggle, within } from "../../testing/server.js";

let waggle: Waggle;
let client: WaggleClient;

beforeAll(async () => {
  waggle = await up();
  client = new WaggleClient({ url: waggle.url, WebSocket: noSocket });
});
afterAll(async () => {
  client.close();
  await waggle.end();
});

test("an agent gets a task, asks, tells its progress and answers", async () => {
  const shouter = await defineAgent<{ text: string }>({
    name: "shouter",
    capabilities: ["shouting"],
    run: async (task) => {
      await task.progress(0.5, "taking a deep breath");
      const mark = await task.ask("Which mark?", { options: ["!", "?"] });
      const times = await task.ask("How often?");
      return task.data.text.toUpperCase() + String(mark).repeat(times as number);
    },
  }).serve({ url: waggle.url });
  const task = await client.tasks.create({ agent: "shouter", data: { text: "bees" } });
  const seen: string[] = [];
  task.on((e) => seen.push(e.type));
  const q = await within(new Promise<string>((go) => task.onQuestions((open) => open[0] && go(open[0].text))), "the question");
  expect(q).toBe("Which mark?");
  await task.answer(task.questions[0] ?? "", "!");
  await within(new Promise<void>((go) => task.onQuestions((open) => open[0]?.text === "How often?" && go())), "the next question");
  await task.message(2); // the answer, too
  expect((await within(task.result(), "the result")).result).toBe("BEES!!");
  await expect(task.message("too late")).rejects.toMatchObject({ code: "TASK_FINISHED" });
  await expect(client.task("nosuch").message("x")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(client.tasks.create({ agent: "nosuch", data: 1 })).rejects.toMatchObject({ code: "AGENT_NOT_FOUND" });
  expect(task.questions).toEqual([]);
  expect(seen).toContain("task.notified");
  const listed = [];
  for await (const t of client.tasks.list()) listed.push(t);
  expect(listed.length).toBeGreaterThan(0);
  await shouter.stop();
  await shouter.done;
});

test("an agent whose connection breaks keeps its task, and its result counts once", async () => {
  let begun: () => void = () => {};
  const started = new Promise<void>((go) => (begun = go));
  let finish: () => void = () => {};
  const mayEnd = new Promise<void>((go) => (finish = go));
  let runs = 0;
  const agent = await defineAgent({
    name: "slow",
    run: async () => {
      runs++;
      begun();
      await mayEnd;
      return { runs };
    },
  }).serve({ url: waggle.url });
  const task = await client.tasks.create({ agent: "slow", data: "work" });
  await within(started, "the start");
  agent.cut();
  finish();
  expect((await within(task.result(), "the result")).result).toEqual({ runs: 1 });
  await agent.stop();
});

test("what an agent throws fails the task; a cancelled task aborts its signal", async () => {
  let aborted: () => void = () => {};
  const cancelled = new Promise<void>((go) => (aborted = go));
  let begun: () => void = () => {};
  const started = new Promise<void>((go) => (begun = go));
  const agent = await defineAgent({
    name: "picky",
    run: (task) => {
      if (task.text === "bad") throw new WaggleError("INVALID_INPUT", "not that");
      begun();
      return new Promise((_, no) =>
        task.signal.addEventListener("abort", () => {
          aborted();
          no(task.signal.reason);
        }),
      );
    },
  }).serve({ url: waggle.url });
  const failed = await client.tasks.create({ agent: "picky", data: "bad" });
  await expect(within(failed.result(), "the failure")).rejects.toMatchObject({ code: "INVALID_INPUT", message: "not that" });
  const stopped = await client.tasks.create({ agent: "picky", data: "long" });
  await within(started, "the start");
  await stopped.cancel("enough");
  await within(cancelled, "the abort");
  await expect(within(stopped.result(), "the end")).rejects.toMatchObject({ detail: { status: "cancelled" } });
  await agent.stop();
});

test("a tool of a service runs for an agent, and is held to its schema", async () => {
  const weather = await defineService({
    name: "weather",
    id: "weather",
    tools: [
      defineTool<{ city: string }>({
        id: "forecast",
        description: "the weather of tomorrow",
        inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        idempotent: true,
        run: ({ city }) => ({ city, sky: "clear" }),
      }),
    ],
  }).serve({ url: waggle.url });
  const agent = await defineAgent({ name: "forecaster", run: (task) => task.callService("weather", "forecast", task.data) }).serve({
    url: waggle.url,
  });
  const task = await client.tasks.create({ agent: "forecaster", data: { city: "Bern" } });
  expect((await within(task.result(), "the forecast")).result).toEqual({ city: "Bern", sky: "clear" });
  const wrong = await client.tasks.create({ agent: "forecaster", data: { town: 1 } });
  await expect(within(wrong.result(), "the refusal")).rejects.toMatchObject({ code: "INVALID_INPUT" });
  await agent.stop();
  await weather.stop();
});

test("a team gets messages, asks about a tool, and is stopped, paused and resumed", async () => {
  const team = await client.teams.create({
    name: "research",
    coordinator: "Lead",
    members: [{ name: "Lead" }, { name: "Reader", tools: ["workspace/*"], auto_execute_tools: false }],
  } as never);
  const events: string[] = [];
  team.on((e) => events.push(e.type));
  await team.message("what does notes.md say?", { target: "Reader" });
  const asked = await within(
    new Promise<import("@waggle-dev/client").Question>((go) => team.onQuestions((open) => open[0] && go(open[0]))),
    "a question",
  );
  expect(asked).toMatchObject({ scope: "tool", route: ["Reader"] });
  await within(team.answer(asked, true), "the answer");
  await expect(within(team.answer(asked, false), "the second answer")).rejects.toMatchObject({ code: "INPUT_ANSWERED" });
  await team.pause();
  await team.resume();
  await team.stop();
  expect((await team.show()).members.map((m) => m.name)).toEqual(["Lead", "Reader"]);
  const ids: string[] = [];
  for await (const t of client.teams.list()) ids.push(t.team_id);
  expect(ids).toContain(team.id);
  await team.delete();
  await expect.poll(() => events.includes("team.closed"), { timeout: 60_000 }).toBe(true);
});
