import { readFile } from "node:fs/promises";
import { WaggleClient } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import * as tasks from "../../examples/tasks.js";
import { maxWait, up, type Waggle, within } from "../../testing/server.js";

// The twelve tasks of docs/SDKS.md, as the page shows them.

const contract = new URL("../../../../proto-schemas/sdk/tasks.json", import.meta.url);
const all = JSON.parse(await readFile(contract, "utf8")) as { name: string; prints: string[] }[];

let waggle: Waggle;
let client: WaggleClient;

beforeAll(async () => {
  waggle = await up();
  client = new WaggleClient({ url: waggle.url });
});
afterAll(async () => {
  client.close();
  await waggle.end();
});

/** What a program prints. */
async function printed(run: () => Promise<unknown>): Promise<string> {
  let text = "";
  const log = vi.spyOn(console, "log").mockImplementation((...words) => {
    text += `${words.map((w) => (typeof w === "string" ? w : JSON.stringify(w))).join(" ")}\n`;
  });
  const write = vi.spyOn(process.stdout, "write").mockImplementation((piece) => {
    text += piece;
    return true;
  });
  try {
    await within(run(), "the end of the program");
  } finally {
    log.mockRestore();
    write.mockRestore();
  }
  return text;
}

/** Lists are as of a second ago. */
async function listed<T>(list: () => AsyncGenerator<T>, fits: (item: T) => boolean): Promise<void> {
  const end = Date.now() + maxWait;
  while (Date.now() < end) for await (const item of list()) if (fits(item)) return;
  throw new Error("the list does not have it");
}

/** A session with a plan that waits for its answer, also in the inbox. */
async function waiting(): Promise<string> {
  const session = client.session();
  session.send("list the files, and read notes.md", { mode: "plan", confirmPlan: true });
  const list = () => client.questions.list({ log: session.id });
  await listed(list, () => true);
  return session.id;
}

async function called(provider: string, tool: string, args: unknown): Promise<void> {
  const call = await client.callTool(provider, tool, { kind: "service", arguments: args });
  console.log(call.result);
}

/** Runs a task, with what it needs around it. */
const around: Record<string, () => Promise<unknown>> = {
  chat: () => tasks.chat(client),
  resume: () => tasks.resume(waggle.url),
  plan: () => tasks.plan(client),
  answer: async () => tasks.answer(client, await waiting()),
  client_tool: () => tasks.clientTool(client),
  file: () => tasks.file(client),
  cancel: () => tasks.cancel(client),
  team: () => tasks.team(client),
  task: async () => {
    const agent = await tasks.writeAgent(waggle.url);
    await tasks.task(client);
    await agent.stop();
  },
  write_agent: async () => {
    const agent = await tasks.writeAgent(waggle.url);
    console.log((await client.session().send("bees", { agent: "shouter" }).result()).text);
    await agent.stop();
  },
  write_tools: async () => {
    const service = await tasks.writeTools(waggle.url);
    await called("calculator", "add", { a: 2, b: 3 });
    await service.stop();
  },
  sessions: async () => {
    const session = client.session();
    await session.send("what does notes.md say?").result();
    await listed(
      () => client.sessions.list({ q: "notes" }),
      (s) => s.session_id === session.id,
    );
    await tasks.sessions(client);
  },
};

test.each(all)("$name", async ({ name, prints }) => {
  const text = (await printed(around[name] as () => Promise<unknown>)).toLowerCase();
  for (const wanted of prints) expect(text).toContain(wanted.toLowerCase());
});
