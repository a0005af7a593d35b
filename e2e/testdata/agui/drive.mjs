// Drives the published client of AG-UI against a gateway, in all flows, and prints what it has seen as one JSON document.
//
//   node drive.mjs URL PACKAGE [TEAMS]
//
// TEAMS are the bases of teams by the flows that they are for, as JSON: those are driven then, and not those of sessions.
// Every frame of a client of 1.0 is checked with the validators of @ag-ui/core. Warnings and errors of the client are counted.
import { randomUUID } from "node:crypto";
import { EventSchema } from "@ag-ui/core/schemas";

const [, , url, name, teams] = process.argv;
const { HttpAgent } = await import(name);
const current = name === "@ag-ui/client";
const report = { client: name, frames: 0, types: {}, warnings: [], invalid: [], flows: {} };

for (const level of ["warn", "error"]) {
  console[level] = (...parts) => report.warnings.push(parts.map((p) => (p instanceof Error ? p.message : typeof p === "string" ? p : JSON.stringify(p))).join(" ").slice(0, 500));
}

// The transport is watched from below: what the client gets is what the gateway has sent.
const real = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const response = await real(...request);
  if (!response.body || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return response;
  const [mine, theirs] = response.body.tee();
  watch(mine).catch((e) => report.invalid.push(String(e)));
  return new Response(theirs, { status: response.status, headers: response.headers });
};

async function watch(body) {
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) {
        if (line && !/^(id|retry|:)/.test(line)) report.invalid.push(`line ${line}`);
        continue;
      }
      const frame = JSON.parse(line.slice(6));
      report.frames++;
      report.types[frame.type] = (report.types[frame.type] ?? 0) + 1;
      if (!current) continue;
      const checked = EventSchema.safeParse(frame);
      if (!checked.success) report.invalid.push(`${line.slice(6, 300)}: ${checked.error.message}`);
    }
  }
}

// Thread is one conversation.
class Thread {
  constructor(base, threadId = randomUUID()) {
    this.base = base;
    this.agent = new HttpAgent({ url: url + base, threadId });
  }

  say(content) {
    this.agent.addMessage({ id: randomUUID(), role: "user", content });
  }

  async run(parameters = {}, seen = () => {}) {
    const runId = parameters.runId ?? randomUUID();
    const end = { runId, types: [] };
    const waits = [];
    try {
      await this.agent.runAgent({ runId, ...parameters }, {
        onEvent: ({ event }) => {
          end.types.push(event.type);
          if (event.type === "RUN_FINISHED") end.outcome = event.outcome;
          if (event.type === "RUN_ERROR") end.failure = { code: event.code, message: event.message };
          waits.push(seen(event, runId));
        },
      });
    } catch (e) {
      end.thrown = e.message;
    }
    await Promise.all(waits);
    return end;
  }

  answer(end, approved = true) {
    const resume = end.outcome.interrupts.map((i) => ({ interruptId: i.id, status: "resolved", payload: { approved } }));
    return this.run({ resume });
  }

  text() {
    return this.agent.messages.filter((m) => m.role === "assistant").map((m) => m.content ?? "").join("|");
  }
}

const waggle = (options) => ({ forwardedProps: { waggle: options } });
const flows = {
  async chat(t) {
    t.say("hello");
    return [await t.run()];
  },
  async plan(t) {
    t.say("plan three things");
    const first = await t.run(waggle({ mode: "plan", confirmPlan: true }));
    return [first, await t.answer(first)];
  },
  async approval(t) {
    t.say("write a file");
    const first = await t.run();
    return [first, await t.answer(first)];
  },
  async refusal(t) {
    t.say("write a file");
    const first = await t.run();
    return [first, await t.answer(first, false)];
  },
  async approvals(t) {
    t.say("plan to write two files");
    const first = await t.run(waggle({ mode: "plan", confirmPlan: false }));
    return [first, await t.answer(first)];
  },
  async tools(t) {
    const tools = [{ name: "where_am_i", description: "the place", parameters: { type: "object", properties: {} } }];
    t.say("where am I");
    const first = await t.run({ tools });
    const asked = t.agent.messages.flatMap((m) => m.toolCalls ?? []).map((c) => c.id);
    if (current && String(first.outcome?.pendingToolCallIds) !== String(asked)) report.invalid.push(`pending are ${first.outcome?.pendingToolCallIds}`);
    for (const toolCallId of asked) {
      t.agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content: "Bern" });
    }
    return [first, await t.run({ tools })];
  },
  async cancel(t) {
    t.say("go on for ever");
    let once = false;
    return [await t.run({}, async (event, runId) => {
      if (event.type !== "TEXT_MESSAGE_CONTENT" || once) return;
      once = true;
      const answer = await real(`${url}${t.base}/threads/${t.agent.threadId}/cancel`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ runId }),
      });
      if (answer.status !== 202) report.invalid.push(`cancel: ${answer.status}`);
    })];
  },
  async failure(t) {
    t.say("fail");
    const failed = await t.run();
    t.say("hello");
    return [failed, await t.run()];
  },
  async budget(t) {
    t.say("read twice");
    const first = await t.run(waggle({ budget: { tool_calls: 1, on_exceeded: "ask" } }));
    return [first, await t.answer(first)];
  },
};

const one = (content, parameters) => async (t) => {
  t.say(content);
  return [await t.run(parameters)];
};
const flowsOfTeams = {
  team: one("build"),
  nested: one("deep"),
  member: one("say it", waggle({ targetMember: "backend/Lead" })),
  async asked(t) {
    t.say("have it written");
    const first = await t.run();
    return [first, await t.answer(first)];
  },
  cancelled: flows.cancel,
  failed: flows.failure,
  async paper(t) {
    t.say("make the paper");
    const runs = [await t.run()];
    while (runs.at(-1).outcome?.type === "interrupt" && runs.length < 20) runs.push(await t.answer(runs.at(-1)));
    return runs;
  },
};

for (const [flow, drive] of Object.entries(teams ? flowsOfTeams : flows)) {
  const base = teams ? JSON.parse(teams)[flow] : "/agui";
  const t = new Thread(base);
  const before = report.frames;
  let runs;
  try {
    runs = await drive(t);
  } catch (e) {
    runs = [{ thrown: `${e.stack}`.slice(0, 500), types: [] }];
  }
  // Another client asks for the same runs again, and gets them cold.
  for (const first of runs) {
    if (!first.runId) continue;
    const again = await new Thread(base, t.agent.threadId).run({ runId: first.runId });
    const ends = (r) => `${r.outcome?.type} ${r.failure?.code} ${JSON.stringify(r.outcome?.interrupts?.map((i) => i.id))}`;
    if (ends(again) !== ends(first)) report.invalid.push(`${flow}: it ends with ${ends(again)} (${again.thrown}) instead of ${ends(first)}`);
  }
  report.flows[flow] = { thread: t.agent.threadId, frames: report.frames - before, text: t.text(), runs: runs.map(({ types, ...r }) => ({ ...r, events: types.length })) };
}
process.stdout.write(JSON.stringify(report));
