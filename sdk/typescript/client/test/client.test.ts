import { type CanonicalEvent, type Session, WaggleClient, type WaggleError } from "@waggle-dev/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { noSocket, up, type Waggle, within } from "../../testing/server.js";

let waggle: Waggle;
let client: WaggleClient;
const question = "which files are in the workspace, and what does notes.md say?";

beforeAll(async () => {
  waggle = await up();
  client = new WaggleClient({ url: waggle.url, WebSocket: noSocket });
});
afterAll(async () => {
  client.close();
  await waggle.end();
});

test("a chat answers, with its tool calls as typed events, each once and in order", async () => {
  const session = client.session();
  const run = session.send("what does notes.md say?");
  const seen: CanonicalEvent[] = [];
  for await (const e of run) seen.push(e);
  const called = seen.find((e) => e.type === "tool.called");
  expect(called?.type === "tool.called" && called.data.tool).toBe("workspace_read_file");
  expect(seen[0]?.type).toBe("message.received");
  expect(seen.at(-1)?.type).toBe("run.completed");
  const seqs = seen.map((e) => e.sequence);
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  const answer = await run.result();
  expect(answer.text).toContain("buy milk");
  expect(answer.outcome).toBe("success");
  let text = "";
  for await (text of run.text());
  expect(text).toBe(answer.text);
});

test("a plan is asked about, changed, carried out, and a step is restarted", async () => {
  const session = client.session();
  const run = session.send(question, { mode: "plan", confirmPlan: true });
  const asked = await within(
    new Promise<import("@waggle-dev/client").Question>((go) => session.onQuestions((open) => open[0] && go(open[0]))),
    "a question",
  );
  expect(asked.scope).toBe("plan");
  const steps = "steps" in asked.data ? (asked.data.steps ?? []) : [];
  expect(steps).toHaveLength(2);
  await session.answer(asked, { approved: true, steps: steps.slice(1) });
  const answer = await within(run.result(), "the answer");
  expect(answer.text).toContain("buy milk");
  expect(session.questions).toEqual([]);
  await expect(session.answer(asked, false)).rejects.toMatchObject({ code: expect.stringMatching(/INPUT_(ANSWERED|NOT_FOUND)/) });

  const repaired = new Promise<CanonicalEvent>((go) => session.on((e) => e.type === "run.completed" && go(e)));
  await within(session.restartStep(steps[1]?.id ?? ""), "the restart");
  await within(repaired, "the run of the restarted step");
  await expect(within(session.restartStep("nosuch"), "the refusal")).rejects.toMatchObject({ code: "TASK_NOT_FOUND", status: 404 });

  const rejected = session.send(question, { mode: "plan", confirmPlan: true });
  const second = await within(new Promise<string>((go) => session.onQuestions((open) => open[0] && go(open[0].id))), "a question");
  await session.answer(second, { approved: false, feedback: "not now" });
  expect((await within(rejected.result(), "the refusal")).outcome).toBe("rejected");
});

test("sessions are listed in pages, shown, exported, imported and deleted", async () => {
  const made: Session[] = [];
  for (let i = 0; i < 3; i++) {
    const s = client.session();
    await s.send(`compute ${i}+1`).result();
    made.push(s);
  }
  await expect
    .poll(
      async () => {
        const ids: string[] = [];
        for await (const s of client.sessions.list({ limit: 2, q: "compute" })) ids.push(s.session_id);
        return made.every((s) => ids.filter((id) => id === s.id).length === 1);
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  const [first, second] = made as [Session, Session];
  expect((await first.show()).session_id).toBe(first.id);
  const state = await second.export();
  expect((await client.sessions.import(state)).session.id).toBe(second.id);
  await first.delete();
  const gone = client.session(first.id);
  const error = await within(
    new Promise<WaggleError>((go) => gone.onConnection((s) => s.ended && go(s.error as WaggleError))),
    "the end of the stream",
  );
  expect(error.code).toBe("SESSION_DELETED");
  expect(error.retryable).toBe(false);
  await expect(gone.send("hello").result()).rejects.toMatchObject({ code: "SESSION_DELETED" });
});

test("announcements of the wanted types come as they happen", async () => {
  const signal = new AbortController();
  let up: () => void = () => {};
  const connected = new Promise<void>((go) => (up = go));
  const live = client.live({ types: ["run.completed"], signal: signal.signal, onConnection: (on) => on && up() });
  const first = live.next();
  await within(connected, "the connection");
  const session = client.session();
  await session.send("compute 1+1").result();
  const e = (await within(first, "the announcement")).value as CanonicalEvent;
  expect(e.type).toBe("run.completed");
  expect(e.subject).toBe(`default.session.${session.id}`);
  signal.abort();
  expect((await live.next()).done).toBe(true);
});

test("what is done to a plan is done once, though its answer is lost with the line", async () => {
  const lost = new Set<string>();
  const forgetful: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    const path = new URL(String(input)).pathname;
    if (init?.method !== "POST" || !path.startsWith("/api/") || lost.has(path)) return answer;
    lost.add(path);
    throw new TypeError("the line broke");
  };
  const own = new WaggleClient({ url: waggle.url, fetch: forgetful, WebSocket: noSocket });
  const session = own.session();
  await session.send(question, { mode: "plan" }).result();
  const seen: string[] = [];
  session.on((e) => seen.push(e.type));
  const times = (type: string) => seen.filter((t) => t === type).length;
  await within(session.restartStep("task_1"), "the restart");
  await expect(session.restartStep("nosuch")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(session.cancelPlan()).rejects.toMatchObject({ code: "RUN_OVER" });
  await expect.poll(() => times("run.completed")).toBe(1);
  const planned = session.send(question, { mode: "plan", confirmPlan: true });
  await within(new Promise<void>((go) => session.onQuestions((open) => open.length > 0 && go())), "a question");
  await session.replan();
  await expect.poll(() => times("input.requested")).toBe(2);
  await session.cancelPlan("enough");
  await within(
    planned.result().catch(() => undefined),
    "the end of the plan",
  );
  expect((await within(session.solve([{ id: "a", title: "compute 6*7" }]).result(), "the answer")).text).toContain("42");
  expect([times("step.restarted"), times("plan.cancelled"), times("message.received")]).toEqual([1, 2, 2]);
  await expect(session.solve([], { id: "b" }).result()).rejects.toMatchObject({ code: "INVALID_FIELD", field: "steps" });
  expect(lost.size).toBe(5);
  own.close();
});

// If a reused connection breaks before the answer arrives, Chromium sends the request again by itself, even a POST. The page cannot tell.
test("an answer that the browser sends twice counts once and is no one else's", async () => {
  const twice: typeof fetch = async (input, init) => {
    if (String(input).endsWith("/answer")) await (await fetch(input, init)).text();
    return fetch(input, init);
  };
  const own = new WaggleClient({ url: waggle.url, WebSocket: noSocket, fetch: twice });
  const session = own.session();
  const run = session.send(question, { mode: "plan", confirmPlan: true });
  const asked = await within(new Promise<string>((go) => session.onQuestions((open) => open[0] && go(open[0].id))), "a question");
  await within(session.answer(asked, true), "the answer");
  expect((await within(run.result(), "the end of the run")).text).toContain("buy milk");
  await expect(within(session.answer(asked, false), "another answer")).rejects.toMatchObject({ code: "INPUT_ANSWERED" });
  own.close();
});

test("an answer counts that the log has when its client is closed, though the server has not said so", async () => {
  const silent: typeof fetch = async (input, init) => {
    const answers = String(input).endsWith("/answer");
    const answer = fetch(input, { ...init, ...(answers ? { signal: null } : {}) });
    if (!answers) return answer;
    await answer;
    init?.signal?.throwIfAborted();
    return new Promise((_, no) => init?.signal?.addEventListener("abort", () => no(init.signal?.reason)));
  };
  const own = new WaggleClient({ url: waggle.url, WebSocket: noSocket, fetch: silent });
  const session = own.session();
  const run = session.send(question, { mode: "plan", confirmPlan: true });
  const asked = await within(new Promise<string>((go) => session.onQuestions((open) => open[0] && go(open[0].id))), "a question");
  const answered = session.answer(asked, true);
  expect((await within(run.result(), "the answer")).text).toContain("buy milk");
  const other = session.answer("nosuch", true);
  own.close();
  await expect(within(answered, "the end of the answer")).resolves.toBeUndefined();
  await expect(within(other, "the end of an answer that did not count")).rejects.toThrow();
});

test("a message may have an odd id", async () => {
  const run = client.session().send("compute 6*7", { id: "my message, the 1st" });
  expect((await within(run.result(), "the answer")).text).toContain("42");
});

test("a message brings files along, which the session keeps", async () => {
  const session = client.session();
  const png = Uint8Array.from(
    atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    (c) => c.charCodeAt(0),
  );
  const run = session.send("hello", {
    files: [
      { type: "image/png", data: png, name: "dot.png" },
      { type: "text/plain", data: new TextEncoder().encode("Zürich") },
    ],
  });
  let received: CanonicalEvent | undefined;
  for await (const e of run) if (e.type === "message.received") received = e;
  const files = received?.type === "message.received" ? (received.data.files ?? []) : [];
  expect(files.map((f) => [f.kind, f.media_type, f.name])).toEqual([
    ["image", "image/png", "dot.png"],
    ["document", "text/plain", undefined],
  ]);
  const [image, text] = await Promise.all(files.map((f) => session.file(f)));
  expect(image?.type).toBe("image/png");
  expect(new Uint8Array((await image?.arrayBuffer()) ?? [])).toEqual(png);
  expect(await text?.text()).toBe("Zürich");
  const bad = session.send("hello", { files: [{ type: "image/png", data: new Uint8Array(129 * 1024) }] });
  await expect(bad.result()).rejects.toMatchObject({ code: "INVALID_FIELD", field: "files[0].data" });
});

test("questions of all sessions are listed and answered, each once", async () => {
  const session = client.session();
  const run = session.send(question, { mode: "plan", confirmPlan: true });
  await within(new Promise<void>((go) => session.onQuestions((open) => open.length > 0 && go())), "a question");
  const find = async () => {
    for await (const q of client.questions.list({ scope: "plan", kind: "session", log: session.id })) return q;
    return undefined;
  };
  await expect.poll(find, { timeout: 30_000 }).toBeDefined(); // the index follows the log
  const asked = await find();
  const outcome = await client.questions.answer(asked ?? "", true);
  expect(outcome).toMatchObject({ decision: "approve", id: asked?.id });
  await expect(client.questions.answer(asked ?? "", false)).rejects.toMatchObject({ code: "INPUT_ANSWERED" });
  expect((await run.result()).text).toContain("buy milk");
});

test("the program sees itself, its limits and the swarm", async () => {
  const me = await client.me();
  expect(me.may).toContain("act");
  expect((await client.quotas()).map((q) => q.resource)).toContain("tokens");
  const names: string[] = [];
  for await (const a of client.swarm.agents({ capability: "general" })) names.push(a.name ?? "");
  expect(names).toContain("assistant");
  for await (const _ of client.swarm.agents({ name: "nosuch" })) expect.unreachable();
  for (const list of [client.swarm.services, client.swarm.clients, client.swarm.servers])
    for await (const p of list()) expect(p).toBeDefined();
});
