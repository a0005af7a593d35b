import { WaggleAgent } from "@waggle-dev/client/agui";
import { expect, test } from "vitest";

/** The ids of the runs under which answers are sent. */
async function ids(...payloads: unknown[]): Promise<string[]> {
  const out: string[] = [];
  const taken = async (_: unknown, init?: RequestInit) => {
    out.push(JSON.parse(String(init?.body)).runId);
    return new Response('{"title":"INVALID_FIELD"}', { status: 422, headers: { "Content-Type": "application/problem+json" } });
  };
  for (const payload of payloads) {
    const agent = new WaggleAgent({ url: "http://waggle.test", threadId: "t", fetch: taken as typeof fetch });
    const resume = [{ interruptId: "approve_1", status: "resolved" as const, payload }];
    await agent.runAgent({ runId: "r1", resume } as Parameters<WaggleAgent["runAgent"]>[0]).catch(() => {});
  }
  return out;
}

test("the same answers have the id of the same run, others that of another", async () => {
  const args = (path: unknown) => ({ approved: true, editedArgs: { path } });
  const [first, again, other] = await ids(args(7), args(7), args("notes.md"));
  expect(first).toMatch(/^r1\.approve_1\./);
  expect(again).toBe(first);
  expect(other).toMatch(/^r1\.approve_1\./);
  expect(other).not.toBe(first);
});
