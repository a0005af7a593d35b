// A process of CopilotKit's real runtime with the published HttpAgent of a package, at an address of AG-UI, and nothing of Waggle.
import { createServer } from "node:http";
import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";

const [, , client, url] = process.argv;
const { HttpAgent } = await import(client);
const runtime = new CopilotRuntime({ agents: { default: new HttpAgent({ url }) } });
const server = createServer(createCopilotNodeListener({ runtime, basePath: "/api" }));
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
