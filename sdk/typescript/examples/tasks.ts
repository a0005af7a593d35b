// The twelve tasks of docs/SDKS.md. client/test/tasks.test.ts runs them.
import { WaggleClient, type WaggleError } from "@waggle-dev/client";
import { defineAgent, defineService, defineTool, type Serving } from "@waggle-dev/client/swarm";

export async function chat(client: WaggleClient): Promise<void> {
  const run = client.session().send("what does notes.md say?");
  for await (const piece of run.deltas()) process.stdout.write(piece.text);
}

export async function resume(url: string): Promise<void> {
  const before = new WaggleClient({ url });
  const session = before.session();
  await session.send("what does notes.md say?", { id: "question-1" }).accepted();
  const [kept, after] = [session.id, session.seq]; // in a file or a database
  before.close();

  const client = new WaggleClient({ url });
  const again = client.session(kept, { after });
  again.on((event) => console.log(event.sequence, event.type)); // each event after the position, once
  const run = again.send("what does notes.md say?", { id: "question-1" }); // the same id: the same run
  console.log((await run.result()).text);
  client.close();
}

export async function plan(client: WaggleClient): Promise<void> {
  const session = client.session();
  const run = session.send("list the files, and read notes.md", { mode: "plan", confirmPlan: true });
  for await (const event of run) {
    if (event.type !== "input.requested") continue;
    console.log(event.data.steps?.map((step) => step.title));
    await session.answer(event.data.input_id, true);
  }
  console.log((await run.result()).text);
}

export async function answer(client: WaggleClient, session: string): Promise<void> {
  for await (const question of client.questions.list({ log: session })) {
    console.log(question.scope, question.steps?.length);
    const outcome = await client.questions.answer(question, { approved: false, feedback: "not now" });
    console.log(outcome.decision);
  }
}

export async function clientTool(client: WaggleClient): Promise<void> {
  const weather = {
    description: "Tells the weather of a city.",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    run: ({ city }: { city: string }) => `21.5 degrees in ${city}`,
  };
  const run = client.session().send('use weather {"city": "Lisbon"}', { tools: { weather } });
  console.log((await run.result()).text);
}

export async function file(client: WaggleClient): Promise<void> {
  const session = client.session();
  const todo = { type: "text/markdown", name: "todo.md", data: new TextEncoder().encode("call mum") };
  for await (const event of session.send("say thanks", { files: [todo] })) {
    if (event.type !== "message.received") continue;
    for (const sent of event.data.files ?? []) console.log(sent.name, await (await session.file(sent)).text());
  }
}

export async function cancel(client: WaggleClient): Promise<void> {
  const run = client.session().send("tell me the story");
  for await (const _ of run.deltas()) {
    await run.cancel("it is late");
    break;
  }
  await run.result().catch((error) => console.log((error as WaggleError).code)); // RUN_CANCELLED
}

export async function team(client: WaggleClient): Promise<void> {
  const team = await client.teams.create({ name: "site", coordinator: "Boss", members: [{ name: "Boss" }, { name: "Coder" }] });
  await team.message("say hello to the bees", { target: "Coder" });
  for await (const event of team.events()) {
    if (event.type !== "team.member_event") continue;
    const own = event.data.event as { type: string; data: { content?: string } };
    if (own.type !== "run.completed") continue;
    console.log(event.data.member_name, own.data.content);
    await team.delete(); // ends the events, too
  }
}

export async function task(client: WaggleClient): Promise<void> {
  const task = await client.tasks.create({ agent: "shouter", data: { text: "hello" } });
  console.log((await task.result()).result);
}

export function writeAgent(url: string): Promise<Serving> {
  const shouter = defineAgent({
    name: "shouter",
    capabilities: ["shouting"],
    run: async (task) => {
      await task.progress(0.5, "taking a deep breath");
      return `${task.text.toUpperCase()}!`;
    },
  });
  return shouter.serve({ url }); // until stop() of the result
}

export function writeTools(url: string): Promise<Serving> {
  const number = { type: "number" };
  const add = defineTool<{ a: number; b: number }>({
    id: "add",
    description: "Adds two numbers.",
    inputSchema: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
    run: ({ a, b }) => a + b,
  });
  return defineService({ id: "calculator", name: "calculator", tools: [add] }).serve({ url });
}

export async function sessions(client: WaggleClient): Promise<void> {
  for await (const session of client.sessions.list({ q: "notes" })) {
    console.log(session.session_id, session.state, session.question);
  }
}
