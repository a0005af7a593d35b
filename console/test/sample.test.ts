import { readFile } from "node:fs/promises";
import { type CanonicalEvent, type FramePage, type LogHead, type LogPage, WaggleApi } from "@waggle-dev/client";
import { beforeAll, expect, test, vi } from "vitest";

// The recorded sample is read like a log of the server, without one.

const path = "/api/v1/logs/session/~sample";
let client: WaggleApi;

beforeAll(async () => {
  vi.stubGlobal("location", { origin: "http://console.example" });
  vi.stubGlobal("fetch", async () => new Response(await readFile(new URL("../src/log/sample.json", import.meta.url))));
  const other = new WaggleApi({ url: "http://other.example" });
  const { clientFor, sample } = await import("../src/log/sample.ts");
  client = clientFor(sample, other);
  expect(clientFor("mine", other)).toBe(other);
});

test("its pages join, forwards and backwards", async () => {
  const { first, last } = await client.call<LogHead>("GET", `${path}/head`);
  expect(first).toBe(1);
  for (const way of ["after", "before"]) {
    const seqs: number[] = [];
    for (let at = way === "after" ? "0" : String(last + 1), more = true; more; ) {
      const page: LogPage = await client.call<LogPage>("GET", `${path}/events?${way}=${at}&limit=7`);
      const got = (page.events as unknown as CanonicalEvent[]).map((e) => e.sequence);
      if (way === "after") seqs.push(...got);
      else seqs.unshift(...got);
      at = page.next ?? "";
      more = page.more ?? false;
    }
    expect(seqs).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  }
});

test("its question has frames in each protocol for people", async () => {
  for (const as of ["agui", "agui-0", "orbit", "myagent", "agent-team"]) {
    const page = await client.call<FramePage>("GET", `${path}/frames?as=${as}&after=29&limit=1`);
    expect(page.events[0]?.frames.length, as).toBeGreaterThan(0);
  }
});

test("it has no snapshot, so that its events are folded", async () => {
  await expect(client.call("GET", `${path}/snapshot?at=9`)).rejects.toMatchObject({ status: 404 });
});
