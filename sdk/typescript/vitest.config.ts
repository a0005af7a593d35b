import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@waggle-dev\/client$/, replacement: file("client/src/index.ts") },
      { find: /^@waggle-dev\/client\/(.*)$/, replacement: file("client/src/$1.ts") },
      { find: /^@waggle-dev\/react$/, replacement: file("react/src/index.ts") },
      { find: /^@waggle-dev\/copilotkit$/, replacement: file("copilotkit/src/index.ts") },
    ],
  },
  test: {
    include: ["*/test/**/*.test.ts", "*/test/**/*.test.tsx"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    pool: "forks",
  },
});
