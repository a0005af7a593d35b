import type { OIDCLogin } from "@waggle-dev/client";
import * as oauth from "oauth4webapi";
import { renewed, signIn } from "../app.ts";
import { callback } from "../route.ts";
import { t } from "../words.ts";
import { identify } from "./live.ts";

// The sign-in with OpenID Connect: the code flow with PKCE. The gateway verifies the token; this page checks that the answer is the
// one to its own question.

/** What has to be known when the reader comes back. */
interface Begun {
  state: string;
  nonce: string;
  verifier: string;
  keep: boolean;
  next: string;
}

const key = "waggle.oidc";

/** The time before its end at which a token is renewed, in seconds. */
const early = 30;

const address = () => location.origin + callback;

/** The configuration allows http on this machine only. */
const options = (at: OIDCLogin) => ({ [oauth.allowInsecureRequests]: new URL(at.issuer).protocol === "http:" });

async function discover(at: OIDCLogin): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(at.issuer);
  return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options(at)));
}

/** Leaves for the page of the provider. */
export async function leave(at: OIDCLogin, keep: boolean, next: string): Promise<void> {
  const server = await discover(at);
  const page = new URL(server.authorization_endpoint ?? "");
  if (page.protocol !== "https:" && page.protocol !== "http:") throw new Error(page.protocol);
  const begun: Begun = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    keep,
    next,
  };
  const query = {
    response_type: "code",
    client_id: at.client_id,
    redirect_uri: address(),
    scope: at.scopes.join(" "),
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(begun.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(query)) page.searchParams.set(name, value);
  sessionStorage.setItem(key, JSON.stringify(begun));
  location.assign(page);
}

/** Signs in with the answer of the provider. Returns the address of what the reader looked at before. */
export async function finish(at: OIDCLogin, answer: URL): Promise<string> {
  const stored = sessionStorage.getItem(key);
  sessionStorage.removeItem(key); // an answer counts once
  if (stored === null) throw new Error(t("login.begun"));
  const begun = JSON.parse(stored) as Begun;
  const server = await discover(at);
  const client = { client_id: at.client_id };
  const query = oauth.validateAuthResponse(server, client, answer, begun.state);
  const response = await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), query, address(), begun.verifier, options(at));
  const got = await oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: begun.nonce,
    requireIdToken: true,
  });
  await signIn(tokenOf(at, got) ?? "", begun.keep);
  renewLater(at, server, got);
  return begun.next;
}

const tokenOf = (at: OIDCLogin, got: oauth.TokenEndpointResponse) => (at.token === "id" ? got.id_token : got.access_token);

/** Renews the token before it ends, if the provider has given a refresh token. That one is in memory only. */
function renewLater(at: OIDCLogin, server: oauth.AuthorizationServer, got: oauth.TokenEndpointResponse): void {
  const { refresh_token: by, expires_in: life } = got;
  if (by === undefined || life === undefined) return;
  setTimeout(() => void again(at, server, by), 1000 * Math.max(life - early, life / 2));
}

async function again(at: OIDCLogin, server: oauth.AuthorizationServer, by: string): Promise<void> {
  const client = { client_id: at.client_id };
  try {
    const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), by, options(at));
    const got = await oauth.processRefreshTokenResponse(server, client, response);
    const token = tokenOf(at, got);
    if (token === undefined) return;
    renewed(token);
    identify();
    renewLater(at, server, { ...got, refresh_token: got.refresh_token ?? by });
  } catch {
    // The token ends then, and the page asks for another one.
  }
}
