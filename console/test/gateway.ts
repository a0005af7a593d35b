import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, vi } from "vitest";

/** Answers the requests of a file's tests, and stands for the browser as far as the models of the page need one. */
export function gateway(answer: RequestListener): void {
  const server = createServer(answer);
  beforeAll(async () => {
    await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
    const store = { getItem: () => null, setItem: () => {}, removeItem: () => {} };
    vi.stubGlobal("window", globalThis);
    vi.stubGlobal("location", { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    vi.stubGlobal("document", { documentElement: { dataset: {} } });
    vi.stubGlobal("sessionStorage", store);
    vi.stubGlobal("localStorage", store);
  });
  afterAll(() => {
    vi.unstubAllGlobals();
    server.closeAllConnections();
    server.close();
  });
}
