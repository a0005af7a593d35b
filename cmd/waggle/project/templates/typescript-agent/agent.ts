// An agent that shouts, with the help of a tool of its own service. Ctrl-C stops it.
import { defineAgent, defineService, defineTool } from "@waggle-dev/client/swarm";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
const where = { url: process.env["WAGGLE_URL"] ?? "ws://127.0.0.1:9000", signal: stop.signal };

const punctuation = defineService({
  name: "punctuation",
  tools: [
    defineTool<{ text: string }>({
      id: "exclaim",
      description: "adds an exclamation mark",
      inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      idempotent: true, // may run again after a crash
      run: ({ text }) => `${text}!`,
    }),
  ],
});

const shouter = defineAgent({
  name: "shouter",
  capabilities: ["shouting"],
  run: async (task) => {
    await task.progress(0.5, "taking a deep breath");
    return task.callService("punctuation", "exclaim", { text: task.text.toUpperCase() });
  },
});

const working = await Promise.all([punctuation.serve(where), shouter.serve(where)]);
console.log(`at work: ${working.map((w) => w.id).join(", ")}`);
await Promise.all(working.map((w) => w.done));
