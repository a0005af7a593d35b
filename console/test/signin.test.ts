import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { faults, violations, visit } from "./page.ts";

// People sign in at a small provider of OpenID Connect, which signs what it says and checks the verifier.

const client = "console";
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

const base64 = (b: string | Buffer) => Buffer.from(b).toString("base64url");

function jwt(claims: object): string {
  const text = `${base64(JSON.stringify({ alg: "ES256", kid: "k", typ: "JWT" }))}.${base64(JSON.stringify(claims))}`;
  return `${text}.${base64(sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }))}`;
}

interface Asked {
  challenge: string;
  nonce: string;
  redirect: string;
}

/** A provider. A test changes what it says. */
class Provider {
  /** Changes the parameters of the answer in the address, or the claims of the ID token. */
  answer: (q: URLSearchParams) => void = () => {};
  claims: (c: Record<string, unknown>) => void = () => {};
  issuer: string;
  life = 3600;
  /** What pages have asked for tokens with. */
  readonly grants: string[] = [];
  private readonly codes = new Map<string, Asked>();

  private constructor(private readonly server: Server) {
    this.issuer = this.url;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Provider> {
    let p: Provider;
    const server = createServer(async (q, a) => {
      const url = new URL(q.url ?? "/", "http://x");
      if (url.pathname === "/authorize") {
        a.writeHead(302, { Location: p.authorize(url.searchParams) });
        return a.end();
      }
      const [status, body] = url.pathname === "/token" ? p.token(await form(q)) : p.document(url.pathname);
      a.writeHead(status, { "Content-Type": "application/json", "Access-Control-Allow-Origin": "*", "Cache-Control": "no-store" });
      a.end(JSON.stringify(body));
    });
    await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
    p = new Provider(server);
    return p;
  }

  private document(path: string): [number, unknown] {
    if (path === "/keys") return [200, { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "ES256", use: "sig" }] }];
    if (path !== "/.well-known/openid-configuration") return [404, {}];
    return [
      200,
      {
        issuer: this.issuer,
        authorization_endpoint: `${this.url}/authorize`,
        token_endpoint: `${this.url}/token`,
        jwks_uri: `${this.url}/keys`,
        id_token_signing_alg_values_supported: ["ES256"],
      },
    ];
  }

  private authorize(q: URLSearchParams): string {
    expect(Object.fromEntries(q)).toMatchObject({
      response_type: "code",
      client_id: client,
      scope: "openid offline_access",
      code_challenge_method: "S256",
    });
    const redirect = q.get("redirect_uri") as string;
    const code = `code-${this.codes.size}`;
    this.codes.set(code, { challenge: q.get("code_challenge") as string, nonce: q.get("nonce") as string, redirect });
    const answer = new URLSearchParams({ code, state: q.get("state") as string });
    this.answer(answer);
    return `${redirect}?${answer}`;
  }

  private token(f: URLSearchParams): [number, unknown] {
    this.grants.push(f.get("grant_type") as string);
    const now = Math.floor(Date.now() / 1000);
    const access = jwt({ iss: this.url, aud: "waggle", sub: "ann", tenant: "default", roles: ["user"], iat: now, exp: now + this.life });
    const all = { access_token: access, token_type: "Bearer", expires_in: this.life };
    if (f.get("grant_type") === "refresh_token") return f.get("refresh_token") === "again" ? [200, all] : [400, { error: "invalid_grant" }];
    const asked = this.codes.get(f.get("code") ?? "");
    this.codes.delete(f.get("code") ?? "");
    const proof = createHash("sha256")
      .update(f.get("code_verifier") ?? "")
      .digest("base64url");
    if (!asked || proof !== asked.challenge || f.get("redirect_uri") !== asked.redirect || f.get("client_id") !== client)
      return [400, { error: "invalid_grant" }];
    const claims = { iss: this.url, aud: client, sub: "ann", nonce: asked.nonce, iat: now, exp: now + this.life };
    this.claims(claims);
    return [200, { ...all, id_token: jwt(claims), refresh_token: "again" }];
  }

  end(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

async function form(q: IncomingMessage): Promise<URLSearchParams> {
  let body = "";
  for await (const piece of q) body += piece;
  return new URLSearchParams(body);
}

const on = {} as { browser: Awaited<ReturnType<typeof launch>>; provider: Provider; waggle: Waggle };

beforeAll(async () => {
  [on.browser, on.provider] = await Promise.all([launch(), Provider.start()]);
  on.waggle = await up(`auth:
  jwt: {issuer: "${on.provider.url}", audience: waggle, jwks_url: "${on.provider.url}/keys"}
  oidc: {client_id: ${client}, scopes: [openid, offline_access]}
`);
});
afterAll(async () => {
  await on.browser?.close();
  if (on.waggle) expect(await violations(on.waggle)).toEqual({});
  await on.waggle?.end();
  on.provider?.end();
});

const button = (page: Page) => page.locator('dialog.login button:has-text("Sign in at")');

test("people sign in at the provider, and come back to what they looked at", async () => {
  const { page, errors } = await visit(on.browser, `${on.waggle.url}/sessions?q=hello`);
  await button(page).waitFor();
  expect(await faults(page)).toEqual([]);
  await page.check('dialog input[type="checkbox"]');
  await button(page).click();
  await page.waitForFunction(() => location.pathname === "/sessions" && !document.querySelector("dialog.login"));
  expect(new URL(page.url()).search).toBe("?q=hello");
  expect(await page.evaluate(() => sessionStorage.getItem("waggle.oidc"))).toBeNull();
  expect(await page.evaluate(() => sessionStorage.getItem("waggle.token"))).toMatch(/^ey/);
  const me = await page.evaluate(async () => {
    const r = await fetch("/api/v1/me", { headers: { Authorization: `Bearer ${sessionStorage.getItem("waggle.token")}` } });
    return ((await r.json()) as { subject: string }).subject;
  });
  expect(me).toBe("ann");
  expect(on.provider.grants).toEqual(["authorization_code"]);
  await page.reload(); // the tab keeps the token
  await page.waitForSelector("main .sessions, main .face");
  expect(await page.locator("dialog.login").count()).toBe(0);
  expect(errors).toEqual([]);
  await page.close();
});

test("a token is renewed before it ends, and is in memory only unless the reader wants it kept", async () => {
  on.provider.grants.length = 0;
  on.provider.life = 6;
  const { page } = await visit(on.browser, on.waggle.url);
  const renewed = page.waitForRequest((q) => q.url().endsWith("/token") && (q.postData() ?? "").includes("grant_type=refresh_token"));
  await button(page).click();
  await renewed;
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).not.toMatch(/ey|again/);
  on.provider.life = 3600;
  await page.close();
});

test("answers that are not the one to this page's question are refused, and the reader is told why", async () => {
  const wrong: [string, () => void, RegExp][] = [
    [
      "state",
      () => {
        on.provider.answer = (q) => q.set("state", "another");
      },
      /"state"/,
    ],
    [
      "nonce",
      () => {
        on.provider.claims = (c) => {
          c["nonce"] = "another";
        };
      },
      /"nonce"/,
    ],
    [
      "issuer of the token",
      () => {
        on.provider.claims = (c) => {
          c["iss"] = "http://127.0.0.1:1";
        };
      },
      /"iss"/,
    ],
    [
      "issuer of the provider",
      () => {
        on.provider.issuer = "http://127.0.0.1:1";
      },
      /issuer/,
    ],
    [
      "audience",
      () => {
        on.provider.claims = (c) => {
          c["aud"] = "another";
        };
      },
      /"aud"/,
    ],
    [
      "code",
      () => {
        on.provider.answer = (q) => q.set("code", "another");
      },
      /refused/,
    ],
    [
      "error",
      () => {
        on.provider.answer = (q) => {
          q.delete("code");
          q.set("error", "access_denied");
        };
      },
      /refused/,
    ],
  ];
  for (const [name, change, why] of wrong) {
    const { page } = await visit(on.browser, `${on.waggle.url}/teams`);
    await button(page).waitFor();
    change();
    await button(page).click();
    await page.waitForSelector("dialog.login .fault");
    const told = await page.textContent("dialog.login .fault");
    expect(told, name).toMatch(/^The sign-in was refused: /);
    expect(told, name).toMatch(why);
    expect(page.url(), name).not.toContain("code=");
    expect(await page.evaluate(() => sessionStorage.getItem("waggle.token")), name).toBeNull();
    expect(await faults(page), name).toEqual([]);
    await page.close();
    on.provider.answer = () => {};
    on.provider.claims = () => {};
    on.provider.issuer = on.provider.url;
  }
});

test("an answer that this tab has not asked for is refused", async () => {
  const { page } = await visit(on.browser, `${on.waggle.url}/login/callback?code=stolen&state=x`);
  await page.waitForSelector("dialog.login .fault");
  expect(await page.textContent("dialog.login .fault")).toContain("this tab has not begun it");
  expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/");
  await page.close();
});

test("without a provider the page connects to its gateway only, and shows no such button", async () => {
  const hash = createHash("sha256").update("secret").digest("hex");
  const own = await up(`auth:\n  api_keys:\n    - {id: ann, sha256: ${hash}, tenant: default, roles: [user]}\n`);
  const head = async (w: Waggle) => (await fetch(w.url, { headers: { Accept: "text/html" } })).headers.get("Content-Security-Policy");
  expect(await head(own)).toContain("connect-src 'self';");
  expect(await head(on.waggle)).toContain(`connect-src 'self' ${on.provider.url};`);
  expect(await (await fetch(`${own.url}/api/v1/console`)).json()).toEqual({});
  const { page } = await visit(on.browser, "about:blank");
  const asked = page.waitForResponse(`${own.url}/api/v1/console`);
  await page.goto(own.url);
  await page.waitForSelector("dialog.login");
  await (await asked).finished();
  await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
  expect(await button(page).count()).toBe(0);
  await page.close();
  await own.end();
});
