import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";

/** The client as which pages sign in. */
export const client = "console";
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

/** A small provider of OpenID Connect, which signs what it says and checks the verifier. A test changes what it says. */
export class Provider {
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
