import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic" },
  resolve: { dedupe: ["@ag-ui/client", "react", "react-dom", "rxjs"] }, // the agent is of the release that assistant-ui speaks
  build: { chunkSizeWarningLimit: 10_000 },
});
