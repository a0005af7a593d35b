import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { freePort, Waggle } from "../../sdk/typescript/testing/server.ts";
import { faults, violations, visit } from "./page.ts";

// "waggle demo": the page kills the server in the middle of an answer, and counts what that cost.

let browser: Browser;
let waggle: Waggle;

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), "waggle-ts-"));
  const local = async () => `127.0.0.1:${await freePort()}`;
  const args = ["demo", "--no-browser", "--down", "100ms", "--data", join(dir, "data"), "--workspace", join(dir, "workspace")];
  args.push("--nats-addr", await local(), "--telemetry-addr", await local());
  [browser, waggle] = await Promise.all([launch(), Waggle.start(args, { dir })]);
});
afterAll(async () => {
  await browser?.close();
  await waggle?.kill("SIGTERM");
  await waggle?.end();
});

test("the plug is pulled twice in one answer, and nothing is lost", async () => {
  const { page, errors } = await visit(browser, waggle.url);
  await page.locator(".ideas").getByRole("button", { name: "Pull the plug" }).click();
  for (const words of ["She flies home", "The line says where to fly"]) {
    await page.getByText(words).first().waitFor();
    await page.locator(".plug button").click();
    await page.locator(".plug").getByText("The answer continued after").waitFor();
  }
  expect(await faults(page)).toEqual([]);
  await page.locator(".plug.counted").waitFor();
  expect(await page.locator(".plug .tally b").textContent()).toBe("0 lost, 0 doubled.");
  const said = (await page.locator(".item.answer").textContent()) ?? "";
  expect(said.match(/waggle dance/g)).toHaveLength(1);
  await page.close();
  expect(errors.filter((e) => !/ERR_|Failed to fetch|network error/.test(e))).toEqual([]); // what a browser says of a server that is gone
  expect(await violations(waggle)).toEqual({});
});

test("in the demo a tool asks before it writes", async () => {
  const { page } = await visit(browser, waggle.url);
  await page.locator(".ideas").getByRole("button", { name: "Call a tool" }).click();
  await page.getByText(/Allow \w*write_file\?/).waitFor();
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  await page.close();
});
