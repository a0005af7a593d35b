// An agent and a tool service of the swarm. Beside a server ("make run"):
//
//   npm run build --prefix sdk/typescript && npx esbuild examples/agent-typescript/agent.ts --bundle --platform=node --format=esm --packages=external --outfile=examples/agent-typescript/dist/agent.js
//   node examples/agent-typescript/dist/agent.js
//   bin/waggle chat --plan --yes "ask shouting to greet the bees"
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
      idempotent: true,
      run: ({ text }) => `${text}!`,
    }),
  ],
});

const shouter = defineAgent({
  name: "ts-shouter",
  capabilities: ["shouting"],
  run: async (task) => {
    await task.progress(0.5, "taking a deep breath");
    return task.callService("punctuation", "exclaim", { text: task.text.toUpperCase() });
  },
});

const working = await Promise.all([punctuation.serve(where), shouter.serve(where)]);
console.log(`at work: ${working.map((w) => w.id).join(", ")}`);
await Promise.all(working.map((w) => w.done));
