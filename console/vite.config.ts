import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const client = (file: string) => fileURLToPath(new URL(`../sdk/typescript/client/src/${file}`, import.meta.url));

const waggle = "http://127.0.0.1:9000";

export default defineConfig({
  resolve: { alias: { "@waggle-dev/client/view": client("view.ts"), "@waggle-dev/client": client("index.ts") } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
  },
  // "npm run dev" shows the sources over a Waggle that runs here; it takes requests of pages of its own origin only.
  server: {
    proxy: {
      "/api": {
        target: waggle,
        configure: (proxy) => proxy.on("proxyReq", (q) => q.getHeader("origin") && q.setHeader("origin", waggle)),
        changeOrigin: true,
      },
    },
  },
});
