import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const client = (file: string) => fileURLToPath(new URL(`../sdk/typescript/client/src/${file}`, import.meta.url));

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  resolve: {
    alias: [
      { find: /^@waggle-dev\/client$/, replacement: client("index.ts") },
      { find: /^@waggle-dev\/client\/(.*)$/, replacement: client("$1.ts") },
    ],
  },
  test: {
    include: ["console/test/**/*.test.ts"],
    testTimeout: 360_000, // bounds a failure: what a test waits for has shorter bounds of its own
    hookTimeout: 360_000,
    maxWorkers: 2,
    pool: "forks",
  },
});
