import { type CanonicalEvent, type TopicMessage, WaggleApi, WaggleClient } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seqs } from "../../testing/events.js";
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

const all = async (id: string, after = 0) => {
  const events: CanonicalEvent[] = [];
  for await (const e of client.log("session", id).events({ after })) events.push(e);
  return events;
};

test("logs and announcements come on one connection that breaks, each event of a log once and in order", async () => {
  const odd = "ann@example.com/1";
  const [one, two, three] = [client.session(), client.session(), client.session(odd, { fresh: true })];
  await Promise.all([one, two, three].map((s) => s.send("say one").result()));
  const line = await Line.to(waggle.url);
  const api = new WaggleApi({ url: line.url, backoff: { min: 10, max: 50 } });
  const leave = new AbortController();
  const logs = { [`session/${one.id}`]: 2, [`session/${two.id}`]: 0, [`session/${odd}`]: 1, "session/never": 0 };
  const seen: Record<string, CanonicalEvent[]> = {};
  const refused: TopicMessage[] = [];
  const announced: CanonicalEvent[] = [];
  let connections = 0;
  let look = () => {};
  const reading = (async () => {
    const onConnection = (up: boolean) => {
      connections += Number(up);
      look();
    };
    for await (const m of api.topics({ logs, announcements: true, types: ["run.completed"], signal: leave.signal, onConnection })) {
      if (m.log === undefined) announced.push(m.event);
      else if ("event" in m) {
        seen[m.log] ??= [];
        seen[m.log]?.push(m.event);
      } else refused.push(m);
      look();
    }
  })();
  const until = (what: string, there: () => boolean) =>
    within(
      new Promise<void>((go) => {
        look = () => there() && go();
        look();
      }),
      what,
    );
  const has = (log: string, type: string, n: number) => (seen[log] ?? []).filter((e) => e.type === type).length >= n;
  await until("the refusal", () => refused.length > 0);
  for (let n = 2; n < 5; n++) {
    const before = connections;
    const runs = [one, two, three].map((s) => s.send(`say ${n}`));
    expect(line.cut()).toBeGreaterThan(0);
    await until("another connection", () => connections > before);
    await Promise.all(runs.map((r) => r.result()));
  }
  await until("all runs", () => Object.keys(logs).every((log) => log === "session/never" || has(log, "run.completed", 4)));
  const four = client.session();
  await four.send("say four").result();
  await until("the announcement", () => announced.some((e) => e.subject === `default.session.${four.id}`));
  leave.abort();
  await reading;
  for (const [id, after] of [
    [one.id, 2],
    [two.id, 0],
    [odd, 1],
  ] as const) {
    const got = seen[`session/${id}`] ?? [];
    const parts = seqs(got);
    expect(parts).toEqual(parts.map((_, i) => after + 1 + i));
    expect((await all(id, got.at(-1)?.sequence)).map((e) => e.type)).not.toContain("run.completed");
  }
  expect(refused).toMatchObject([{ log: "session/never", error: { code: "SESSION_NOT_FOUND", status: 404 } }]);
  expect(new Set(announced.map((e) => e.type))).toEqual(new Set(["run.completed"]));
  line.end();
});

test("a stream ends with its last topic, and with credentials that do not count", async () => {
  const told: TopicMessage[] = [];
  for await (const m of client.topics({ logs: { "team/never": 0, "task/never": 0 } })) told.push(m);
  expect(told).toMatchObject([
    { log: "team/never", error: { code: "TEAM_NOT_FOUND" } },
    { log: "task/never", error: { code: "TASK_NOT_FOUND" } },
  ]);
  expect(await client.topics({}).next()).toMatchObject({ done: true });
  await expect(client.topics({ logs: { "session/a b": 0, "session/c d": 0 } }).next()).rejects.toMatchObject({ code: "INVALID_FIELD" });
  const other = await up(`auth:\n  api_keys:\n    - {id: ann, sha256: ${"a".repeat(64)}, tenant: acme, roles: [user]}\n`);
  const stranger = new WaggleApi({ url: other.url, token: () => "wrong" });
  await expect(stranger.topics({ announcements: true }).next()).rejects.toMatchObject({ status: 401 });
  await other.end();
});

test("a connection that says nothing for too long is made again", async () => {
  const leave = new AbortController();
  let connections = 0;
  const onConnection = (up: boolean) => {
    if (up && ++connections === 3) leave.abort();
  };
  const api = new WaggleApi({ url: waggle.url, backoff: { min: 10, max: 20 } });
  const none = api.topics({ announcements: true, types: ["session.deleted"], silence: 200, signal: leave.signal, onConnection });
  expect(await within(none.next(), "three connections")).toMatchObject({ done: true });
});
