import { type CanonicalEvent, WaggleApi, WaggleClient } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { seqs } from "../../testing/events.js";
import { HoldingProxy } from "../../testing/proxy.js";
import { up, type Waggle, within } from "../../testing/server.js";

const key = "wgl_key with / and +";
let waggle: Waggle;
let direct: WaggleClient;
let proxy: HoldingProxy;

beforeAll(async () => {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  const sha256 = Buffer.from(hash).toString("hex");
  waggle = await up(`auth:
  api_keys:
    - { id: ann, sha256: ${sha256}, subject: ann, tenant: default, roles: [user] }
`);
  direct = new WaggleClient({ url: waggle.url, token: key, WebSocket });
  proxy = await HoldingProxy.to(waggle.url);
});
afterAll(async () => {
  direct.close();
  proxy.end();
  await waggle.end();
});

/** Reads the topics of a log until the condition holds. */
async function read(
  api: WaggleApi,
  log: string,
  enough: (all: CanonicalEvent[]) => boolean,
  ups: boolean[] = [],
): Promise<CanonicalEvent[]> {
  const all: CanonicalEvent[] = [];
  const leave = new AbortController();
  const told = api.topics({ logs: { [log]: 0 }, signal: leave.signal, onConnection: (up) => ups.push(up) });
  for await (const m of told) {
    if ("event" in m && m.log !== undefined) all.push(m.event);
    if (enough(all)) break;
  }
  leave.abort();
  return all;
}

const has = (type: string, n: number) => (all: CanonicalEvent[]) => all.filter((e) => e.type === type).length >= n;

test("where a proxy holds answers back, streams come over WebSockets, and go on behind the last event when these break", async () => {
  const session = direct.session();
  await within(session.send("say one").result(), "the first run");
  const api = new WaggleApi({ url: proxy.url, token: () => key, WebSocket, backoff: { min: 10, max: 50 } });
  const log = `session/${session.id}`;
  const ups: boolean[] = [];
  const reading = read(api, log, has("run.completed", 4), ups);
  for (let n = 2; n < 5; n++) {
    await within(session.send(`say ${n}`).result(), `run ${n}`);
    proxy.cut();
  }
  const got = await within(reading, "all runs");
  const parts = seqs(got);
  expect(parts).toEqual(parts.map((_, i) => i + 1));
  expect(ups[0]).toBe(true); // and not before something came
  expect(proxy.handshakes).toBeGreaterThan(0);

  const before = proxy.handshakes;
  const own = new WaggleClient({ url: proxy.url, token: key, WebSocket });
  const followed = own.session(session.id);
  const seen = new Promise<void>((go) => followed.on((e) => e.type === "run.completed" && go()));
  await within(seen, "the log of a session");
  expect(proxy.handshakes).toBeGreaterThan(before);
  own.close();
  api.close();
});

test("where neither passes, an answer has more time, and refusals have their reasons", async () => {
  const session = direct.session();
  await within(session.send("say one").result(), "the run");
  proxy.sockets = false;
  try {
    const before = proxy.handshakes;
    const api = new WaggleApi({ url: proxy.url, token: key, WebSocket, backoff: { min: 10, max: 50 } });
    const reading = read(api, `session/${session.id}`, has("run.completed", 1));
    await within(
      proxy.until(() => proxy.handshakes > before),
      "the handshake that is refused",
    );
    proxy.sockets = true;
    await within(reading, "the run behind the proxy");
    api.close();
    const stranger = new WaggleApi({ url: proxy.url, token: "wgl_wrong", WebSocket });
    await expect(
      within(
        read(stranger, `session/${session.id}`, () => false),
        "the refusal",
      ),
    ).rejects.toMatchObject({ status: 401 });
  } finally {
    proxy.sockets = true;
  }
});

test("a reader that does not read ends its WebSocket, and misses nothing", async () => {
  const session = direct.session();
  for (let n = 0; n < 32; n++) await within(session.send(`${n} ${"x".repeat(150_000)}`).result(), `run ${n}`);
  const { last } = await direct.log("session", session.id).head();
  const before = proxy.handshakes;
  const api = new WaggleApi({ url: proxy.url, token: key, WebSocket, backoff: { min: 10, max: 50 } });
  let at = 0;
  for await (const m of api.topics({ logs: { [`session/${session.id}`]: 0 } })) {
    if (!("event" in m)) continue;
    expect(m.event.from ?? m.event.sequence).toBe(at + 1);
    at = m.event.sequence;
    if (at === last) break;
    await within(
      proxy.until(() => proxy.idle || proxy.handshakes > before + 1),
      "the end of the first WebSocket",
    );
  }
  expect(at).toBe(last);
  expect(proxy.handshakes).toBeGreaterThan(before + 1);
  api.close();
});
