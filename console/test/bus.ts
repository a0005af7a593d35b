import { createPrivateKey, createPublicKey, randomUUID, sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function base32(bytes: Buffer): string {
  const bits = [...bytes].map((b) => b.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? []).map((five) => letters[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}

function unbase32(text: string): Buffer {
  const bits = [...text].map((c) => letters.indexOf(c).toString(2).padStart(5, "0")).join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((b) => Number.parseInt(b, 2)));
}

/** CRC-16 as XMODEM has it, which ends each nkey. */
function crc(bytes: Buffer): number {
  let sum = 0;
  for (const b of bytes) {
    sum ^= b << 8;
    for (let i = 0; i < 8; i++) sum = (sum & 0x8000 ? (sum << 1) ^ 0x1021 : sum << 1) & 0xffff;
  }
  return sum;
}

/** The key of a seed, and the public key as the bus knows it. */
function keyOf(seed: string) {
  const head = Buffer.from("302e020100300506032b657004220420", "hex"); // PKCS #8 of Ed25519
  const key = createPrivateKey({ key: Buffer.concat([head, unbase32(seed).subarray(2, 34)]), format: "der", type: "pkcs8" });
  const user = Buffer.concat([Buffer.from([20 << 3]), createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32)]);
  const end = Buffer.alloc(2);
  end.writeUInt16LE(crc(user));
  return { key, public: base32(Buffer.concat([user, end])) };
}

/** Sends messages to streams, or requests to JetStream, of a "waggle up" with the data folder, with all rights, and waits for the answers. */
export async function publish(data: string, all: readonly { subject: string; body: string }[]): Promise<void> {
  const folder = join(data, "nats-keys");
  const [seed, url] = await Promise.all(["all.nk", "url"].map((f) => readFile(join(folder, f), "utf8").then((text) => text.trim())));
  const { hostname, port } = new URL(url as string);
  const { key, public: nkey } = keyOf(seed as string);
  const inbox = `_INBOX.${randomUUID()}`;
  await new Promise<void>((done, fail) => {
    const s = connect(Number(port), hostname);
    let text = "";
    let answers = 0;
    s.on("error", fail);
    s.on("data", (b) => {
      text += b;
      const info = /^INFO (.*)\r\n/.exec(text);
      if (info) {
        text = text.slice(info[0].length);
        const { nonce } = JSON.parse(info[1] as string) as { nonce: string };
        const sig = sign(null, Buffer.from(nonce), key).toString("base64url");
        s.write(`CONNECT ${JSON.stringify({ verbose: false, pedantic: false, nkey, sig, protocol: 1, lang: "test", version: "1" })}\r\n`);
        s.write(`SUB ${inbox} 1\r\n`);
        for (const m of all) s.write(`PUB ${m.subject} ${inbox} ${Buffer.byteLength(m.body)}\r\n${m.body}\r\n`);
      }
      for (let m = answer.exec(text); m; m = answer.exec(text)) {
        text = text.slice(m.index + m[0].length);
        if ((m[1] as string).includes('"error"')) fail(new Error(m[1]));
        answers++;
      }
      if (text.includes("-ERR")) fail(new Error(text));
      if (answers === all.length) {
        s.end();
        done();
      }
    });
  });
}

/** A message with JSON on one line, as JetStream answers. */
const answer = /MSG \S+ 1 \d+\r\n(.*)\r\n/;

/** The subject of a command, whose partition is the FNV-1a hash of what it is for. */
export function commandSubject(service: string, tenant: string, key: string, verb: string): string {
  return `cmd.${service}.${shardOf(`${service}.${tenant}.${key}`)}.${tenant}.${key}.${verb}`;
}

/** The shard of sixteen that a name belongs to. */
export function shardOf(name: string): string {
  let hash = 0x811c9dc5;
  for (const b of Buffer.from(name)) hash = Math.imul(hash ^ b, 0x01000193) >>> 0;
  return String(hash % 16).padStart(2, "0");
}
