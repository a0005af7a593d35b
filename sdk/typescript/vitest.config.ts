import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: repository,
  resolve: {
    alias: [
      { find: /^@waggle-dev\/client$/, replacement: file("client/src/index.ts") },
      { find: /^@waggle-dev\/client\/(.*)$/, replacement: file("client/src/$1.ts") },
      { find: /^@waggle-dev\/react$/, replacement: file("react/src/index.ts") },
      { find: /^@waggle-dev\/ai-sdk$/, replacement: file("ai-sdk/src/index.ts") },
      { find: /^@waggle-dev\/copilotkit\/react$/, replacement: file("copilotkit/src/react.tsx") },
      { find: /^@waggle-dev\/copilotkit$/, replacement: file("copilotkit/src/index.ts") },
    ],
  },
  test: {
    include: ["sdk/typescript/*/test/**/*.test.ts", "examples/test/**/*.test.ts"],
    testTimeout: 360_000, // bounds a failure: what a test waits for has shorter bounds of its own
    hookTimeout: 360_000,
    maxWorkers: 2,
    pool: "forks",
  },
});
