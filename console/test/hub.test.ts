import { join } from "node:path";
import { type CanonicalEvent, WaggleClient } from "@waggle-dev/client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { seqs } from "../../sdk/typescript/testing/events.ts";
import { maxWait, up, type Waggle, within } from "../../sdk/typescript/testing/server.ts";
import { Hub } from "../src/live/hub.ts";
import { announcements, type News } from "../src/live/protocol.ts";
import { Tap } from "../src/live/tap.ts";
import { publish, shardOf } from "./bus.ts";

// The hub of tabs and a real gateway, without a browser.

let waggle: Waggle;
let client: WaggleClient;
const sha = async (key: string) => {
  const { createHash } = await import("node:crypto");
  return createHash("sha256").update(key).digest("hex");
};

beforeAll(async () => {
  waggle = await up(`auth:
  api_keys:
    - {id: ann, sha256: ${await sha("key-of-ann")}, tenant: acme, roles: [user]}
    - {id: ann2, sha256: ${await sha("other-key-of-ann")}, tenant: acme, roles: [user]}
    - {id: vera, sha256: ${await sha("key-of-vera")}, tenant: acme, roles: [viewer]}
    - {id: bob, sha256: ${await sha("key-of-bob")}, tenant: other, roles: [user]}
`);
  client = new WaggleClient({ url: waggle.url, token: "key-of-ann" });
});
afterAll(async () => {
  client?.close();
  await waggle?.end();
});

const soon = { timeout: maxWait };

/** What ends the tabs of a test. */
const tabs: (() => void)[] = [];
afterEach(async () => {
  for (const end of tabs.splice(0)) end();
  await expect.poll(streams, soon).toBe(0);
});

/** What a tab has heard, and a way to wait for it. */
class Ear {
  readonly tap = new Tap();
  readonly news: News[] = [];
  private look = () => {};

  constructor(hub: Hub | undefined, who: string, token: string) {
    const line = new MessageChannel();
    if (hub) tabs.push(hub.serve(line.port1));
    this.tap.identify(who, token);
    this.tap.plug(line.port2);
  }

  hear = (n: News) => {
    this.news.push(n);
    this.look();
  };

  until(what: string, there: () => boolean): Promise<void> {
    return within(
      new Promise<void>((go) => {
        this.look = () => there() && go();
        this.look();
      }),
      what,
    );
  }

  get events(): CanonicalEvent[] {
    return this.news.flatMap((n) => (n.do === "event" ? [n.event] : []));
  }

  get overs(): string[] {
    return this.news.flatMap((n) => (n.do === "over" ? [n.error.code] : []));
  }

  runs(n: number): boolean {
    return this.events.filter((e) => e.type === "run.completed").length >= n;
  }
}

/** Has a message answered, in a session of its own without an id, and reads nothing after that. */
async function say(content: string, id?: string): Promise<string> {
  const s = client.session(id);
  await s.send(content).result();
  s.close();
  return s.id;
}

async function streams(): Promise<number> {
  const metrics = await (await fetch(`http://${waggle.option("--telemetry-addr")}/metrics`)).text();
  return Number(/^waggle_gateway_connections\{dialect="events"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

test("topics come and go, and each log stays whole and in order, over many streams and a gateway that is killed", async () => {
  const hub = new Hub(waggle.url);
  const session = await say("say one");
  const [one, two] = [new Ear(hub, "ann", "key-of-ann"), new Ear(hub, "ann", "other-key-of-ann")];
  one.tap.follow(`session/${session}`, 0, one.hear);
  const live = new Ear(hub, "ann", "key-of-ann");
  live.tap.follow(announcements, 0, live.hear);
  await live.until("the connection", () => live.news.some((n) => n.do === "up" && n.up));
  await one.until("the first run", () => one.runs(1));
  for (let n = 2; n < 8; n++) {
    const other = await say("say hello");
    const leave = two.tap.follow(`session/${other}`, 0, two.hear); // the stream changes while events come
    const run = say(`say ${n}`, session);
    if (n === 5) await waggle.restart();
    await run;
    await two.until("the other session", () => two.runs(n - 1));
    if (n % 2) leave();
  }
  await one.until("all runs", () => one.runs(7));
  expect(seqs(one.events)).toEqual(seqs(one.events).map((_, i) => i + 1));
  const heard = live.events.filter((e) => e.subject?.endsWith(session)).map((e) => e.sequence);
  expect(heard.length).toBe(new Set(heard).size);
  await expect.poll(streams, soon).toBe(1);
});

test("a log that another tab follows already says where it is", async () => {
  const hub = new Hub(waggle.url);
  const session = await say("say one");
  const one = new Ear(hub, "ann", "key-of-ann");
  one.tap.follow(`session/${session}`, 0, one.hear);
  await one.until("the run", () => one.runs(1));
  const last = one.events.at(-1)?.sequence ?? 0;
  const two = new Ear(hub, "ann", "key-of-ann");
  two.tap.follow(`session/${session}`, 1, two.hear);
  await two.until("the head", () => two.news.length > 0);
  expect(two.news[0]).toMatchObject({ do: "head", seq: last });
  await say("say two", session);
  await two.until("the second run", () => two.runs(1));
  expect(seqs(two.events)).toEqual(seqs(one.events).filter((s) => s > last));
});

test("more topics than a stream has go on others, three at most, and those that wait get in when others leave", async () => {
  const hub = new Hub(waggle.url);
  const ear = new Ear(hub, "ann", "key-of-ann");
  const leave: (() => void)[] = [];
  const all = await Promise.all(Array.from({ length: 26 }, () => say("say x")));
  const come = () => new Set(ear.events.map((e) => e.subject)).size;
  for (const s of all) {
    leave.push(ear.tap.follow(`session/${s}`, 0, ear.hear));
  }
  await ear.until("24 logs", () => come() === 24);
  await expect.poll(streams, soon).toBe(3);
  for (const f of leave.slice(20)) f();
  await ear.until("the last two", () => come() === 26);
  for (const f of leave.slice(1)) f();
  await expect.poll(streams, soon).toBe(1);
  await say("say y", all[0]);
  await ear.until(
    "the one that is left",
    () => ear.events.filter((e) => e.subject?.endsWith(all[0] as string) && e.type === "run.completed").length === 2,
  );
  expect(ear.overs).toEqual([]);
});

test("tabs of different principals have nothing in common, and a token that is refused ends only the tabs that have it", async () => {
  const hub = new Hub(waggle.url);
  const session = await say("say one");
  const [ann, bob] = [new Ear(hub, "ann", "key-of-ann"), new Ear(hub, "bob", "key-of-bob")];
  for (const e of [ann, bob]) {
    e.tap.follow(announcements, 0, e.hear);
    e.tap.follow(`session/${session}`, 0, e.hear);
  }
  await ann.until("the run", () => ann.runs(1));
  await bob.until("the refusal", () => bob.overs.length > 0);
  expect(bob.overs).toEqual(["SESSION_NOT_FOUND"]);
  const wrong = new Ear(hub, "ann", "wrong");
  wrong.tap.follow(announcements, 0, wrong.hear);
  const third = await say("say three");
  wrong.tap.follow(`session/${third}`, 0, wrong.hear); // another stream, with the newest token
  await wrong.until("the refusal", () => wrong.overs.length === 2);
  expect(wrong.overs).toEqual(["UNAUTHENTICATED", "UNAUTHENTICATED"]);
  await say("say two", session);
  await ann.until("the second run", () => ann.events.filter((e) => e.subject?.endsWith(session) && e.type === "run.completed").length >= 3);
  expect(ann.overs).toEqual([]);
  expect(bob.events).toEqual([]);
  wrong.tap.identify("ann", "other-key-of-ann");
  wrong.tap.follow(`session/${third}`, 0, wrong.hear);
  await wrong.until("the log", () => wrong.runs(1));
});

test("a tab that does not answer is let go, and goes on where it was when it is back", async () => {
  const hub = new Hub(waggle.url, 200);
  const session = await say("say one");
  const line = new MessageChannel();
  hub.serve(line.port1);
  const tap = new Tap();
  const ear = new Ear(undefined, "ann", "key-of-ann");
  tap.identify("ann", "key-of-ann");
  tap.follow(`session/${session}`, 0, ear.hear);
  // The port of a tab that its browser has frozen: what comes waits.
  const frozen = new MessageChannel();
  const waiting: unknown[] = [];
  let thawed = false;
  let dropped = () => {};
  line.port2.onmessage = ({ data }) => {
    if (thawed || ear.events.length === 0) return frozen.port1.postMessage(data);
    waiting.push(data);
    if (data.do === "dropped") dropped();
  };
  frozen.port1.onmessage = ({ data }) => line.port2.postMessage(data);
  tap.plug(frozen.port2);
  await ear.until("the first run", () => ear.runs(1));
  await within(new Promise<void>((go) => (dropped = go)), "the end");
  await say("say two", session);
  thawed = true;
  for (const m of waiting) frozen.port1.postMessage(m);
  await ear.until("the second run", () => ear.runs(2));
  expect(seqs(ear.events)).toEqual(seqs(ear.events).map((_, i) => i + 1));
  tap.plug(new MessageChannel().port2); // the tab has ended
});

test("a log whose beginning has expired says where it begins", async () => {
  const session = await say("say one");
  const viewer = new WaggleClient({ url: waggle.url, token: "key-of-vera" }); // who sees sessions whose owner is forgotten
  const { last } = await viewer.log("session", session).head();
  const log = `acme.session.${session}`;
  const shard = shardOf(log);
  const body = JSON.stringify({ filter: `evt.${shard}.${log}`, keep: 3 });
  await publish(join(waggle.dir, "data"), [{ subject: `$JS.API.STREAM.PURGE.EVT_${shard}`, body }]);
  await waggle.restart("SIGTERM"); // which forgets what it has in memory
  await expect.poll(async () => (await viewer.log("session", session).head()).first, soon).toBe(last - 2);
  const ear = new Ear(new Hub(waggle.url), "vera", "key-of-vera");
  ear.tap.follow(`session/${session}`, 1, ear.hear);
  await ear.until("the end", () => ear.runs(1));
  expect(ear.news[0]).toMatchObject({ do: "first", seq: last - 2 });
  expect(seqs(ear.events)).toEqual([last - 2, last - 1, last]);
  viewer.close();
});
