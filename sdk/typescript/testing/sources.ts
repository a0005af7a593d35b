import { fileURLToPath } from "node:url";

const source = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** The packages of this repository as bundlers find their sources: nothing has to be built before a test. */
export const sources: Record<string, string> = Object.fromEntries(
  ["agui", "errors", "store", "stream", "svelte", "swarm", "view", "vue"]
    .map((part) => [`@waggle-dev/client/${part}`, source(`client/src/${part}.ts`)])
    .concat([
      ["@waggle-dev/client", source("client/src/index.ts")],
      ["@waggle-dev/ai-sdk", source("ai-sdk/src/index.ts")],
      ["@waggle-dev/react", source("react/src/index.ts")],
    ]),
);
