import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { maxWait } from "../../sdk/typescript/testing/server.ts";
import { client, Provider } from "./provider.ts";

// The sign-in of the page without a browser: its questions go to a provider, and its answers are checked. What the gateway makes of
// the token, and the page that comes back, are in walks.test.ts.

vi.mock("../src/model/live.ts", () => ({ identify: () => {} }));

/** What a tab keeps. */
class Tab implements Pick<Storage, "getItem" | "setItem" | "removeItem"> {
  readonly kept = new Map<string, string>();
  getItem = (key: string) => this.kept.get(key) ?? null;
  setItem = (key: string, value: string) => void this.kept.set(key, value);
  removeItem = (key: string) => void this.kept.delete(key);
}

const tab = new Tab();
const browser = new Tab();
let provider: Provider;
let gateway: ReturnType<typeof createServer>;
let page: typeof import("../src/model/signin.ts");
let app: typeof import("../src/app.ts");
const place = { origin: "", href: "", pathname: "/", search: "", assign: (_: string | URL) => {} };

beforeAll(async () => {
  provider = await Provider.start();
  gateway = createServer((q, a) => {
    const oidc = { issuer: provider.url, client_id: client, scopes: ["openid", "offline_access"] };
    a.writeHead(200, { "Content-Type": "application/json" });
    a.end(JSON.stringify(q.url === "/api/v1/console" ? { oidc } : { may: [] }));
  });
  await new Promise<void>((go) => gateway.listen(0, "127.0.0.1", go));
  place.origin = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  vi.stubGlobal("location", place);
  vi.stubGlobal("history", { replaceState: (_: unknown, __: string, to: string) => show(to), pushState: () => {} });
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("document", { addEventListener: () => {}, documentElement: { dataset: {} } });
  vi.stubGlobal("sessionStorage", tab);
  vi.stubGlobal("localStorage", browser);
  show("/");
  page = await import("../src/model/signin.ts");
  app = await import("../src/app.ts");
});
afterAll(() => {
  vi.unstubAllGlobals();
  provider.end();
  gateway.closeAllConnections();
  gateway.close();
});
beforeEach(() => {
  tab.kept.clear();
  provider.grants.length = 0;
});
afterEach(() => {
  provider.answer = () => {};
  provider.claims = () => {};
  provider.issuer = provider.url;
  provider.life = 3600;
});

function show(path: string): void {
  const url = new URL(path, place.origin);
  Object.assign(place, { href: url.href, pathname: url.pathname, search: url.search });
}

/** Leaves for the provider from a page, and comes back with its answer; undefined: the page could not leave. */
async function leave(from: string, keep: boolean): Promise<string | undefined> {
  show(from);
  let left: string | undefined;
  place.assign = (to) => {
    left = String(to);
  };
  await page.away((await page.look()) as NonNullable<typeof page.provider.value>, keep);
  if (left === undefined) return undefined;
  const answer = await fetch(left, { redirect: "manual" });
  return answer.headers.get("Location") as string;
}

async function signIn(from: string, keep: boolean): Promise<void> {
  const back = await leave(from, keep);
  if (back === undefined) return;
  show(back);
  await page.returned();
}

test("the reader comes back to what was looked at, with a token that the tab keeps if it shall", async () => {
  await signIn("/sessions?q=hello", true);
  expect([page.trouble.value, app.login.value]).toEqual(["", "no"]);
  expect(place.pathname + place.search).toBe("/sessions?q=hello");
  expect(app.token()).toMatch(/^ey/);
  expect([...tab.kept]).toEqual([["waggle.token", app.token()]]);
  expect(provider.grants).toEqual(["authorization_code"]);
});

test("a token is renewed before it ends, and is in memory only unless the reader wants it kept", async () => {
  provider.life = 6;
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    await signIn("/", false);
    const first = app.token();
    provider.life = 3600;
    vi.advanceTimersByTime(2999);
    expect(provider.grants).toEqual(["authorization_code"]);
    vi.advanceTimersByTime(1);
    vi.useRealTimers();
    await expect.poll(() => provider.grants, { timeout: maxWait }).toContain("refresh_token");
    await expect.poll(() => app.token(), { timeout: maxWait }).not.toBe(first);
  } finally {
    vi.useRealTimers();
  }
  expect(JSON.stringify([...tab.kept, ...browser.kept])).not.toMatch(/ey|again/);
});

const another = (name: string) => (c: Record<string, unknown>) => {
  c[name] = "http://127.0.0.1:1";
};

test.each<[string, RegExp, () => void]>([
  ["state", /"state"/, () => (provider.answer = (q) => q.set("state", "another"))],
  ["nonce", /"nonce"/, () => (provider.claims = another("nonce"))],
  ["issuer of the token", /"iss"/, () => (provider.claims = another("iss"))],
  ["audience", /"aud"/, () => (provider.claims = another("aud"))],
  ["issuer of the provider", /issuer/, () => (provider.issuer = "http://127.0.0.1:1")],
  ["code", /refused/, () => (provider.answer = (q) => q.set("code", "another"))],
])("an answer with another %s is refused, and the reader is told why", async (_, why, change) => {
  const before = app.token();
  change();
  await signIn("/teams", true);
  expect(page.trouble.value).toMatch(/^The sign-in was refused: /);
  expect(page.trouble.value).toMatch(why);
  expect(place.href).not.toContain("code=");
  expect([...tab.kept]).toEqual([]);
  expect(app.token()).toBe(before);
});

test("a refusal of the provider, and an answer that this tab has not asked for, are told", async () => {
  provider.answer = (q) => {
    q.delete("code");
    q.set("error", "access_denied");
  };
  await signIn("/teams", true);
  expect(page.trouble.value).toMatch(/^The sign-in was refused: /);
  show("/login/callback?code=stolen&state=x");
  await page.returned();
  expect(page.trouble.value).toContain("it was not started in this tab");
  expect(place.pathname + place.search).toBe("/");
  expect(provider.grants).toEqual([]);
});
