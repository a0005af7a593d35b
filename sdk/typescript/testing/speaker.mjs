// Shows a session and sends it messages, for the test of cut lines in e2e: speaker.mjs SESSION URL...
//
// Each line of the standard input is a message, sent once the one before has its answer. The output has the events of the
// session, and {"answered": MESSAGE} after each answer, as lines of JSON.
import { createInterface } from "node:readline";
import { WaggleClient } from "@waggle-dev/client";

const [session, ...url] = process.argv.slice(2);
const tell = (of) => process.stdout.write(`${JSON.stringify(of)}\n`);

const client = new WaggleClient({ url, backoff: { min: 5, max: 50 } });
const s = client.session(session, { fresh: true });
s.on(tell);
for await (const line of createInterface({ input: process.stdin })) {
  await s.send(line).result();
  tell({ answered: line });
}
client.close();
