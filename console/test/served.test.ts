import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { up } from "../../sdk/typescript/testing/server.ts";

// What a gateway says to a page, without one.

test("an installation without the console has no page", async () => {
  const server = await up("console: {enabled: false}\n");
  for (const path of ["/", "/sessions/s1", "/icon.svg"]) {
    const answer = await fetch(server.url + path, { headers: { Accept: "text/html" } });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  }
  await server.end();
});

test("what the rooms of the installation read is for operators, and a page without a provider is told of none", async () => {
  const key = (name: string) => `    - {id: ${name}, sha256: ${createHash("sha256").update(`key-of-${name}`).digest("hex")},`;
  const server = await up(`auth:
  api_keys:
${key("ann")} tenant: acme, roles: [user]}
${key("olga")} tenant: acme, roles: [operator]}
`);
  const status = async (path: string, who?: string) =>
    (await fetch(`${server.url}/api/v1/${path}`, who ? { headers: { "X-API-Key": `key-of-${who}` } } : {})).status;
  for (const path of ["installation", "rates", "dead-letters", "queues"])
    expect([await status(path), await status(path, "ann"), await status(path, "olga")], path).toEqual([401, 403, 200]);
  expect(await (await fetch(`${server.url}/api/v1/console`)).json()).toEqual({});
  await server.end();
});
