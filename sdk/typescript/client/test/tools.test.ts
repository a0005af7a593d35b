import { WaggleClient, WaggleError } from "@waggle-dev/client";
import { defineAgent, defineService, defineTool } from "@waggle-dev/client/swarm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Line, noSocket, up, type Waggle, within } from "../../testing/server.js";

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

test("a program calls a tool, and gets its result, its failure or the refusal", async () => {
  const runs: unknown[] = [];
  const service = await defineService({
    name: "adder",
    id: "adder",
    tools: [
      defineTool<{ a: number; b: number }>({
        id: "add",
        inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
        run: (p) => {
          runs.push(p);
          if (p.b < 0) throw new WaggleError("TOO_SMALL", "b is too small");
          return { sum: p.a + p.b };
        },
      }),
    ],
  }).serve({ url: waggle.url });
  const add = (args: unknown, id?: string) => client.callTool("adder", "add", { kind: "service", arguments: args, ...(id ? { id } : {}) });
  const done = await within(add({ a: 1, b: 2 }, "first"), "the sum");
  expect(done).toMatchObject({ status: "success", provider: "adder", tool: "add", result: { sum: 3 } });
  expect(await add({ a: 1, b: 2 }, "first")).toEqual(done);
  expect(runs).toEqual([{ a: 1, b: 2 }]);
  expect(await within(add({ a: 1, b: 2 }), "another call")).not.toHaveProperty("call_id", done.call_id);
  expect(await within(add({ a: 1, b: -1 }), "the failure")).toMatchObject({
    status: "error",
    error: expect.stringContaining("b is too small"),
  });
  await expect(within(add({ a: "x" }), "the refusal")).rejects.toMatchObject({ code: "INVALID_INPUT" });
  await expect(client.callTool("adder", "divide", { kind: "service" })).rejects.toMatchObject({ code: "TOOL_NOT_FOUND" });
  const mine = await within(client.callTool("workspace", "read_file", { kind: "mcp", arguments: { path: "notes.md" } }), "the file");
  expect(JSON.stringify(mine.result)).toContain("buy milk");
  await service.stop();
});

test("a call outlives its connections, and runs once", async () => {
  let finish: () => void = () => {};
  const mayEnd = new Promise<void>((go) => (finish = go));
  let begun: () => void = () => {};
  const started = new Promise<void>((go) => (begun = go));
  let runs = 0;
  const slow = defineTool({
    id: "wait",
    run: async () => {
      runs++;
      begun();
      await mayEnd;
      return "done";
    },
  });
  const service = await defineService({ name: "slow", id: "slow", tools: [slow] }).serve({ url: waggle.url });
  const line = await Line.to(waggle.url);
  const caller = new WaggleClient({ url: line.url, backoff: { min: 10, max: 100 } });
  const call = caller.callTool("slow", "wait", { kind: "service" });
  await within(started, "the start");
  expect(line.cut()).toBeGreaterThan(0);
  finish();
  expect(await within(call, "the outcome")).toMatchObject({ status: "success", result: "done" });
  expect(runs).toBe(1);
  const given = caller.callTool("slow", "wait", { kind: "service" }, { signal: AbortSignal.abort() });
  await expect(given).rejects.toMatchObject({ name: "AbortError" });
  caller.close();
  line.end();
  await service.stop();
});

test("a failed task is submitted again as a new one, once for each id", async () => {
  let tries = 0;
  const agent = await defineAgent<{ text: string }>({
    name: "unlucky",
    run: (task) => {
      if (++tries === 1) throw new Error("not today");
      return `${task.data.text}!`;
    },
  }).serve({ url: waggle.url });
  const task = await client.tasks.create({ agent: "unlucky", data: { text: "bees" } });
  await expect(within(task.result(), "the failure")).rejects.toMatchObject({ message: "not today" });
  const [next, same] = await Promise.all([task.retry("again"), task.retry("again")]);
  expect(next).not.toBe(task.id);
  expect(same).toBe(next);
  const second = client.task(next);
  expect((await within(second.result(), "the result")).result).toBe("bees!");
  expect(tries).toBe(2);
  await expect(second.retry()).rejects.toMatchObject({ status: 409 });
  const patient = await defineAgent({
    name: "patient",
    run: (task) => new Promise((_, no) => task.signal.addEventListener("abort", () => no(task.signal.reason))),
  }).serve({ url: waggle.url });
  const cancelled = await client.tasks.create({ agent: "patient", data: 1 });
  await cancelled.cancel();
  await expect(within(cancelled.result(), "the end")).rejects.toBeInstanceOf(WaggleError);
  const third = client.task(await cancelled.retry());
  expect(third.id).not.toBe(cancelled.id);
  await third.cancel();
  await expect(within(third.result(), "the second end")).rejects.toBeInstanceOf(WaggleError);
  await patient.stop();
  await agent.stop();
});
