import { type BaseEvent, HttpAgent, type Message } from "@ag-ui/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Line, Model, up, type Waggle, within } from "../../testing/server.js";
import type { WaggleAgent as Agent, WaggleAgentConfig } from "../src/agui.js";
import { WaggleClient } from "../src/index.js";
import { defineAgent } from "../src/swarm.js";

const plan = {
  summary: "two",
  reasoning: "r",
  tasks: ["a", "b"].map((id) => ({ id, title: `do ${id}`, description: `do ${id}`, dependencies: [], priority: 0, capability: "" })),
};

/** The tests of WaggleAgent, with one release of the client. */
export function agentTests(load: () => Promise<new (c: WaggleAgentConfig) => Agent>): void {
  let waggle: Waggle;
  let proxy: Line;
  let model: Model;
  let WaggleAgent: new (c: WaggleAgentConfig) => Agent;

  beforeAll(async () => {
    WaggleAgent = await load();
    model = await Model.start((_, planning) =>
      planning ? { text: JSON.stringify(plan) } : { text: Array.from({ length: 25 }, (_, i) => `word${i} `).join(""), pauseMs: 20 },
    );
    waggle = await up("", model.env);
    proxy = await Line.to(waggle.url);
  });
  afterAll(async () => {
    proxy?.end();
    await waggle?.end();
    model?.end();
  });

  const texts = (messages: Message[]) => messages.filter((m) => m.role === "assistant").map((m) => String(m.content ?? ""));

  test("a run whose line is cut again and again goes on behind each frame, and tells nothing twice", async () => {
    const agent = new WaggleAgent({ url: proxy.url, threadId: crypto.randomUUID() });
    (agent as unknown as { http: { backoff: object } }).http.backoff = { min: 5, max: 30 };
    const events: BaseEvent[] = [];
    agent.subscribe({
      onEvent: ({ event }) => {
        events.push(event);
        if (event.type === "TEXT_MESSAGE_CONTENT") proxy.cut();
      },
    });
    agent.addMessage({ id: "u1", role: "user", content: "tell me words" });
    await within(agent.runAgent(), "the run");
    expect(texts(agent.messages)).toEqual([Array.from({ length: 25 }, (_, i) => `word${i} `).join("")]);
    expect(events.filter((e) => e.type === "RUN_STARTED")).toHaveLength(1);
    expect(events.at(-1)?.type).toBe("RUN_FINISHED");
    expect(proxy.cuts).toBeGreaterThan(5);
    console.log(`AG-UI: ${events.length} frames, ${proxy.cuts} lines cut, 1 run`);
  });

  test("questions end a run, answers go on with it, and a newcomer has the same messages", async () => {
    const agent = new WaggleAgent({ url: waggle.url, threadId: crypto.randomUUID() });
    agent.addMessage({ id: "u1", role: "user", content: "do two things" });
    await within(agent.runAgent({ forwardedProps: { waggle: { mode: "plan", confirmPlan: true } } }), "the question");
    const asked = agent.pendingInterrupts;
    expect(asked).toHaveLength(1);
    await within(agent.answer({ [asked[0]?.id ?? ""]: { approved: true } }), "the answer");
    expect(agent.pendingInterrupts).toEqual([]);
    const last = texts(agent.messages).at(-1);
    expect(last).toContain("word24");
    const newcomer = new WaggleAgent({ url: waggle.url, threadId: agent.threadId });
    await within(newcomer.connectAgent(), "the join");
    expect(texts(newcomer.messages).at(-1)).toBe(last);
    const nobody = new WaggleAgent({ url: waggle.url, threadId: crypto.randomUUID() });
    await within(nobody.connectAgent(), "the join of a thread that does not exist");
    expect(nobody.messages).toEqual([]);
  });

  test("the question of an agent of the swarm is an interrupt, and the agent gets the answer", async () => {
    const painter = await defineAgent({
      name: "painter",
      run: async (task) => `painted ${await task.ask("Which colour?", { options: ["red", "green"], timeoutMs: 600_000 })}`,
    }).serve({ url: waggle.url });
    const agent = new HttpAgent({ url: `${waggle.url}/agui/agents/painter`, threadId: crypto.randomUUID() });
    agent.addMessage({ id: "u1", role: "user", content: "paint it" });
    await within(agent.runAgent(), "the question");
    const [q] = agent.pendingInterrupts;
    expect(q).toMatchObject({ reason: "input_required", message: "Which colour?", metadata: { waggle: { options: ["red", "green"] } } });
    const answers = (answer: string) => ({ resume: [{ interruptId: q?.id ?? "", status: "resolved" as const, payload: { answer } }] });
    await within(agent.runAgent(answers("green") as Parameters<HttpAgent["runAgent"]>[0]), "the answer");
    expect(agent.pendingInterrupts).toEqual([]);
    expect(texts(agent.messages)).toEqual(["painted green"]);
    await painter.stop();
    await painter.done;
  });

  test("abortRun leaves the run, which goes on; stop stops it", async () => {
    const agent = new WaggleAgent({ url: waggle.url, threadId: crypto.randomUUID() });
    const leave = agent.subscribe({ onTextMessageContentEvent: () => agent.abortRun() });
    agent.addMessage({ id: "u1", role: "user", content: "words" });
    await within(agent.runAgent(), "the end of the watching");
    leave.unsubscribe();
    const client = new WaggleClient({ url: waggle.url });
    const ended = await within(
      new Promise<string>((go) =>
        client.session(agent.threadId).on((e) => /^run\.(completed|failed|cancelled)$/.test(e.type) && go(e.type)),
      ),
      "the end of the run",
    );
    expect(ended).toBe("run.completed");
    const second = new WaggleAgent({ url: waggle.url, threadId: agent.threadId });
    let stopped: Promise<void> | undefined;
    second.subscribe({
      onTextMessageContentEvent: () => {
        stopped ??= second.stop("enough");
      },
    });
    second.addMessage({ id: "u2", role: "user", content: "words" });
    await within(
      second.runAgent().catch(() => {}),
      "the end of the run",
    );
    await stopped;
    const types: string[] = [];
    for await (const e of client.session(agent.threadId).events()) {
      types.push(e.type);
      if (e.type === "run.cancelled") break;
    }
    expect(types.at(-1)).toBe("run.cancelled");
    client.close();
  });

  test("a clone reaches the same server, and a refusal is a typed error", async () => {
    const agent = new WaggleAgent({ url: [waggle.url], threadId: crypto.randomUUID() }).clone();
    agent.addMessage({ id: "u1", role: "user", content: "words" });
    await within(agent.runAgent(), "the run");
    expect(texts(agent.messages)[0]).toContain("word24");
    await expect(agent.runAgent({ runId: "x".repeat(300) })).rejects.toMatchObject({ code: "INVALID_FIELD" });
  });
}
