import { beforeAll, expect, test, vi } from "vitest";
import { gateway } from "./gateway.ts";

// What a page knows before its server's index does, and what it does when its key ends, against a server.

vi.mock("../src/model/live.ts", () => ({ onChange: () => () => {}, follow: (read: () => Promise<void>) => [() => {}, void read()][0] }));

let expires: string | undefined;
let over = false;
let sessions: object[] = [];

gateway((q, a) => {
  const answer = (status: number, body: object) => {
    a.writeHead(status, { "Content-Type": status === 200 ? "application/json" : "application/problem+json" });
    a.end(JSON.stringify(body));
  };
  if (over) answer(401, { status: 401, title: "CREDENTIALS_EXPIRED", detail: "Get new ones and reconnect with your last seq." });
  else if (q.url === "/api/v1/me") answer(200, { subject: "ann", tenant: "acme", roles: ["user"], may: ["watch", "act"], expires });
  else if (q.url?.startsWith("/api/v1/sessions")) answer(200, { sessions });
  else answer(200, {});
});

let app: typeof import("../src/app.ts");
let lists: typeof import("../src/model/lists.ts");

beforeAll(async () => {
  app = await import("../src/app.ts");
  lists = await import("../src/model/lists.ts");
});

test("a new session is listed with the message that was sent, until the server lists it", async () => {
  lists.remember("new", "Which files are there?");
  sessions = [{ session_id: "old", question: "Before", updated_at: "2026-01-01T00:00:00Z", last_seq: 9, state: "completed" }];
  const list = lists.sessionList({ q: "", state: "" });
  await list.read();
  const rows = () => list.rows.value?.map((r) => [r.session_id, r.question, r.state, r.runs]);
  expect(rows()).toEqual([
    ["new", "Which files are there?", "running", 1],
    ["old", "Before", "completed", undefined],
  ]);
  sessions.unshift({ session_id: "new", updated_at: "2026-01-02T00:00:00Z", last_seq: 1, state: "idle", runs: 0 });
  await list.read();
  expect(rows()?.[0]).toEqual(["new", "Which files are there?", "running", 1]);
  sessions[0] = {
    session_id: "new",
    question: "Which files are there?",
    updated_at: "2026-01-02T00:00:01Z",
    last_seq: 9,
    state: "completed",
    runs: 1,
  };
  await list.read();
  expect(rows()?.[0]).toEqual(["new", "Which files are there?", "completed", 1]);
  const found = lists.sessionList({ q: "before", state: "" });
  sessions = [];
  await found.read();
  expect(found.rows.value).toEqual([]);
  for (const l of [list, found]) l.close();
});

test("a key that ends is missed at its end, without anybody acting", async () => {
  expires = new Date(Date.now() + 100).toISOString();
  expect(await app.begin()).toBe(true);
  expect(app.login.value).toBe("no");
  over = true;
  await expect.poll(() => app.login.value, { timeout: 60_000 }).toBe("expired");
  const error = await app.client.me().catch((e) => e);
  expect(app.reason(error)).toBe("Your key has expired. Sign in again; your text is kept.");
});
