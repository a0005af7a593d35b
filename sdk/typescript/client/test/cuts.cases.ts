import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CanonicalEvent, WaggleClient } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Line, Model, up, type Waggle, within } from "../../testing/server.js";

const viewers = 8;

let waggle: Waggle;
let model: Model;
let folder: string;
let minted = 0;
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** A token that is good for a few seconds: each line outlives several. */
function token(): string {
  minted++;
  const part = (v: unknown) => Buffer.from(JSON.stringify(v)).toString("base64url");
  const now = Date.now() / 1000;
  const text = `${part({ alg: "ES256", kid: "k" })}.${part({ iss: "test", aud: "waggle", sub: "alice", tenant: "default", roles: ["user"], iat: Math.floor(now), exp: Math.floor(now + 4) })}`;
  return `${text}.${sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

beforeAll(async () => {
  const words = Array.from({ length: 60 }, (_, i) => `word${i} `).join("");
  model = await Model.start(() => ({ text: words, pauseMs: 20 }));
  folder = await mkdtemp(join(tmpdir(), "waggle-ts-keys-"));
  const keys = join(folder, "keys.json");
  await writeFile(keys, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "ES256", use: "sig" }] }));
  waggle = await up(`auth:\n  jwt: {issuer: test, audience: waggle, jwks_file: ${keys}, leeway: 1s}\n`, model.env);
});
afterAll(async () => {
  await waggle.end();
  model.end();
  await rm(folder, { recursive: true, force: true });
});

/** What a viewer has been shown: each sequence with what it stood for, texts joined. */
class Account {
  readonly types = new Map<number, string>();
  readonly texts = new Map<string, string>();
  last = 0;
  doubled = 0;
  reordered = 0;

  take(e: CanonicalEvent): void {
    const from = e.from ?? e.sequence;
    if (from <= this.last) this.doubled++;
    if (from > this.last + 1) this.reordered++;
    this.last = e.sequence;
    if (e.type === "message.delta") this.texts.set(e.data.message_id, (this.texts.get(e.data.message_id) ?? "") + e.data.text);
    else this.types.set(e.sequence, JSON.stringify(e));
  }
}

/** Viewers of a session while lines are cut, the server is killed, and tokens end. */
export function cutsTest(wantedCuts: number, wantedKills: number): void {
  test(`${wantedCuts} cuts, ${wantedKills} kills and new tokens: viewers get what an undisturbed one gets`, {
    timeout: 60_000 + wantedCuts * 100 + wantedKills * 20_000,
  }, async () => {
    const proxy = await Line.to(waggle.url);
    const backoff = { min: 5, max: 50 };
    const client = new WaggleClient({ url: proxy.url, token, backoff });
    const id = client.session().id;
    const session = client.session(id);
    const accounts = Array.from({ length: viewers }, () => new Account());
    const clients = accounts.map(() => new WaggleClient({ url: proxy.url, token, backoff }));
    await session.send("begin").result();

    const waiting: { last: number; go: () => void }[] = [];
    const shown = new Map<number, () => void>(); // by how many events it waits for
    let events = 0;
    clients.forEach((c, i) => {
      c.session(id).on((e) => {
        accounts[i]?.take(e);
        for (const w of waiting.splice(0)) accounts.every((a) => a.last >= w.last) ? w.go() : waiting.push(w);
        shown.get(++events)?.();
      });
    });

    // One run follows the other while lines are cut, often enough and until each viewer has outlived its tokens.
    let messages = 1;
    let stop = false;
    let answers = 0;
    let exhausted = 0;
    const talk = (async () => {
      while (!stop) {
        messages++;
        await session
          .send(`message ${messages}`)
          .result()
          .catch((e) => {
            if (e.code !== "ATTEMPTS_EXHAUSTED") throw e; // each attempt at the answer was killed
            exhausted++;
          });
        answers++;
      }
    })();
    talk.catch(() => {}); // awaited below
    let kills = 0;
    while (proxy.cuts < wantedCuts || minted <= viewers * 2) {
      if (kills < wantedKills && proxy.cuts >= ((kills + 1) * wantedCuts) / (wantedKills + 1)) {
        kills++;
        await waggle.restart();
      }
      // Each line has carried something when it is cut, and now and then it breaks before.
      const more = 1 + (proxy.cuts % 5) * viewers;
      await within(Promise.race([new Promise<void>((go) => shown.set(events + more, go)), talk]), "further events");
      proxy.cut();
    }
    stop = true;
    await within(talk, "the last answers");

    // The undisturbed viewer reads the log in one go.
    const calm = new WaggleClient({ url: waggle.url, token });
    const detail = await calm.session(id).show();
    const whole = new Account();
    for await (const e of calm.session(id).events()) {
      whole.take(e);
      if (e.sequence >= Number(detail.last_seq)) break;
    }
    await within(
      new Promise<void>((go) => {
        waiting.push({ last: whole.last, go });
        if (accounts.every((a) => a.last >= whole.last)) go();
      }),
      "all viewers",
    );
    for (const c of [client, calm, ...clients]) c.close();
    proxy.end();

    let lost = 0;
    for (const a of accounts) {
      for (const [seq, text] of whole.types) if (a.types.get(seq) !== text) lost++;
      for (const [message, text] of whole.texts) if (a.texts.get(message) !== text) lost++;
    }
    const doubled = accounts.reduce((n, a) => n + a.doubled, 0);
    const reordered = accounts.reduce((n, a) => n + a.reordered, 0);
    const received = [...whole.types.values()].filter((t) => t.includes('"message.received"')).length;
    console.log(
      `${proxy.cuts} lines cut, ${kills} kills -9, ${minted} tokens of 4 s, ${messages} messages sent, ${received} in the log (${exhausted} ran out of attempts), ` +
        `${viewers} viewers of ${whole.last} events: ${lost} lost, ${doubled} doubled, ${reordered} reordered`,
    );
    expect({ lost, doubled, reordered }).toEqual({ lost: 0, doubled: 0, reordered: 0 });
    expect(received).toBe(messages);
    expect(proxy.cuts).toBeGreaterThanOrEqual(wantedCuts);
    expect(kills).toBe(wantedKills);
    expect(minted).toBeGreaterThan(viewers * 2);
    expect(answers).toBe(messages - 1);
  });
}
