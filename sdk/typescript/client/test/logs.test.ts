import { type Artifact, type CanonicalEvent, type Team, unwrap, WaggleClient } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { up, type Waggle, within } from "../../testing/server.js";

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

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of list) out.push(item);
  return out;
}

const seqs = (list: CanonicalEvent[]) => list.map((e) => e.sequence);

test("a log is read in pages of any size, forwards and backwards, and of some types alone", async () => {
  const session = client.session();
  for (const text of ["hello", "what does notes.md say?", "what is 6*7?"]) await within(session.send(text).result(), text);
  const log = client.log("session", session.id);
  const { first, last, kind } = await log.head();
  expect({ first, kind }).toEqual({ first: 1, kind: "session" });
  const whole = Array.from({ length: last }, (_, i) => i + 1);
  for (const limit of [1, 3, last, undefined]) {
    const page = limit === undefined ? {} : { limit };
    expect(seqs(await all(log.events(page)))).toEqual(whole);
    expect(seqs(await all(log.events({ ...page, after: 2 })))).toEqual(whole.slice(2));
    expect(seqs(await all(log.events({ ...page, before: last })))).toEqual(whole.slice(0, -1).reverse());
  }
  const asked = await all(log.events({ types: ["message.received", "tool.called"], limit: 2 }));
  expect(asked.map((e) => e.type)).toEqual(["message.received", "message.received", "tool.called", "message.received"]);
  const run = (asked[0] as CanonicalEvent & { data: { run_id: string } }).data.run_id;
  expect(await all(log.events({ types: ["message.received"], run }))).toEqual(asked.slice(0, 1));
  const page = await log.page({ before: 4, limit: 2 });
  expect({ ...page, events: seqs(page.events as never) }).toMatchObject({ events: [2, 3], more: true, next: "2" });
  await expect(log.page({ after: last + 7 })).rejects.toMatchObject({ code: "CURSOR_INVALID" });
  await expect(client.log("session", "nobodys").head()).rejects.toMatchObject({ status: 404 });
});

/** Has a member do something, and waits for the end of that. */
async function does(team: Team, text: string): Promise<void> {
  let stop = () => {};
  const over = new Promise<void>((go) => {
    stop = team.on((e) => unwrap(e).event.type === "run.completed" && go());
  });
  await team.message(text);
  await within(over, text);
  stop();
}

test("files that members have made are listed, and fetched in each version", async () => {
  const team = await client.teams.create({
    name: "writers",
    coordinator: "Ann",
    members: [{ name: "Ann", tools: ["workspace/*"], auto_execute_tools: true }],
  } as never);
  for (const text of ["write buy milk to todo.txt", "write one to other.txt", "append call mum to todo.txt"]) await does(team, text);
  const log = client.log("team", team.id);
  const files = await all(log.artifacts());
  expect(files.map((f) => f.path)).toEqual(["todo.txt", "other.txt"]);
  const texts = await Promise.all(files.map(async (f) => (await log.artifact(f)).text()));
  expect(texts).toEqual(["buy milk\ncall mum\n", "one\n"]);
  expect(files.map((f) => f.size)).toEqual(texts.map((t) => t.length));

  const made = unwrap((await all(log.events({ types: ["artifact.persisted"] })))[0] as CanonicalEvent).event.data as Artifact;
  expect(await (await log.artifact(made)).text()).toBe("buy milk\n");
  expect(await (await log.artifact(made.artifact_id)).text()).toBe("buy milk\ncall mum\n");
  await expect(log.artifact("artifact_0123456789abcdef")).rejects.toMatchObject({ code: "NOT_FOUND", status: 404 });
  await expect(log.artifact({ ...made, object: { log: `member.${team.id}`, digest: "0a" } })).rejects.toMatchObject({ status: 404 });
  team.close();
});
