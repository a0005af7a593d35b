import { type Question, WaggleClient } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Model, up, type Waggle, within } from "../../testing/server.js";

let waggle: Waggle;
let model: Model;
let client: WaggleClient;
const plan = {
  summary: "two",
  reasoning: "",
  tasks: ["a", "b"].map((id) => ({ id, title: `do ${id}`, description: `do ${id}`, dependencies: [], priority: 0, capability: "" })),
};

beforeAll(async () => {
  const long = Array.from({ length: 2000 }, (_, i) => `word${i} `).join("");
  model = await Model.start((_, planning) => (planning ? { text: JSON.stringify(plan) } : { text: long, pauseMs: 20 }));
  waggle = await up("", model.env);
  client = new WaggleClient({ url: waggle.url });
});
afterAll(async () => {
  client?.close();
  await waggle?.end();
  model?.end();
});

test("a planned run is stopped step by step and as a whole, after its question was answered", async () => {
  const session = client.session();
  const steps: string[] = [];
  const stopped = new Promise<void>((go) => session.on((e) => e.type === "step.cancelled" && steps.push(e.data.step_id ?? "") && go()));
  const begun = new Promise<void>((go) => session.on((e) => e.type === "message.delta" && e.data.stage === "solving" && go()));
  const run = session.send("do two things", { mode: "plan", confirmPlan: true });
  const asked = await within(new Promise<Question>((go) => session.onQuestions((open) => open[0] && go(open[0]))), "the question");
  await session.answer(asked, true);
  await within(begun, "the work");
  await session.cancelStep("a", "not needed");
  await within(stopped, "the end of the step");
  expect(steps).toEqual(["a"]);
  await run.cancel("enough");
  await expect(within(run.result(), "the end of the run")).rejects.toMatchObject({ code: "RUN_CANCELLED" });
});

test("messages wait in order while one is answered, and the session stops the one that is on", async () => {
  const session = client.session();
  const order: string[] = [];
  session.on((e) => e.type === "message.received" && order.push(e.data.content));
  const runs = ["first", "second", "third"].map((text) => session.send(text));
  await within(Promise.all(runs.map((r) => r.accepted())), "the acceptance");
  for (const run of runs) {
    const first = run.text()[Symbol.asyncIterator]().next();
    await within(first, "a piece of the answer");
    await session.cancel();
    await expect(within(run.result(), "the end of the run")).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  }
  expect(order).toEqual(["first", "second", "third"]);
});
