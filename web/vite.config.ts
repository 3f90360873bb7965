import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

import { licencePlugin } from "./licence-plugin.ts";
import { serviceWorkerPlugin } from "./service-worker-plugin.ts";

// For work on the app: `npm run dev` beside a running server, whose address may be given.
const server = process.env["SYLPH_URL"] ?? "http://127.0.0.1:8090";

export default defineConfig({
  plugins: [svelte(), licencePlugin(), serviceWorkerPlugin(import.meta.dirname)],
  build: {
    outDir: "../src/sylph/interfaces/http/app",
    emptyOutDir: true,
    // The server's policy forbids scripts in the page itself.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    target: "es2023",
  },
  resolve: process.env["VITEST"] ? { conditions: ["browser"] } : {},
  server: {
    // The name the server has: who is logged in there is logged in here, too.
    host: "127.0.0.1",
    proxy: Object.fromEntries(
      ["/api", "/v1", "/ws", "/login", "/docs", "/redoc", "/openapi.json", "/metrics"].map((path) => [
        path,
        { target: server, changeOrigin: true, ws: path === "/ws", headers: { origin: server } },
      ]),
    ),
  },
  // Machines are busy at times, and properties try much.
  test: { environment: "jsdom", testTimeout: 30_000, include: ["src/**/*.test.ts"], reporters: ["dot"], silent: true, pool: "vmThreads" },
});
