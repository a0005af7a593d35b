// CopilotKit's runtime with threads that live in Waggle, and the page. It builds the page when it starts.
process.env.COPILOTKIT_TELEMETRY_DISABLED ??= "true";

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";
import { WaggleAgent } from "@waggle-dev/client/agui";
import { WaggleRunner } from "@waggle-dev/copilotkit";
import { build } from "esbuild";

const folder = fileURLToPath(new URL(".", import.meta.url));
await build({
  entryPoints: [join(folder, "src/main.tsx")],
  outdir: join(folder, "dist"),
  bundle: true,
  splitting: true,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  loader: { ".ttf": "empty", ".woff": "empty", ".woff2": "dataurl" },
  logLevel: "warning",
});

const where = { url: process.env.WAGGLE_URL ?? "http://127.0.0.1:9000" };
const runtime = new CopilotRuntime({ agents: { default: new WaggleAgent(where) }, runner: new WaggleRunner(where) });
const answerAgents = createCopilotNodeListener({ runtime, basePath: "/api/copilotkit" });

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

async function answerFiles(request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  const name = pathname === "/" ? "index.html" : pathname.slice(1);
  try {
    if (!/^(index\.html|dist\/[\w.-]+)$/.test(name)) throw new Error("not found");
    const body = await readFile(join(folder, name));
    response.writeHead(200, { "Content-Type": types[extname(name)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
}

const server = createServer((request, response) =>
  request.url?.startsWith("/api/copilotkit") ? answerAgents(request, response) : answerFiles(request, response),
);
server.listen(Number(process.env.PORT ?? 4000), "127.0.0.1", () => console.log(`open http://127.0.0.1:${server.address().port}/`));
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    server.closeAllConnections();
    server.close(() => process.exit(0));
  });
}
