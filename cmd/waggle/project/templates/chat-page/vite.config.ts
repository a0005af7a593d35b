import { defineConfig } from "vite";

// The page asks the server that it comes from, which passes the requests on to Waggle as requests of its own.
const target = process.env["WAGGLE_HTTP"] ?? "http://127.0.0.1:9000";
const waggle = { target, changeOrigin: true, headers: { Origin: target } };

export default defineConfig({
  esbuild: { jsx: "automatic" },
  server: { proxy: { "/ai": waggle, "/api": waggle, "/agui": waggle } },
});
