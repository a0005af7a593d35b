import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { commandSubject, publish } from "./bus.ts";
import { faults, stage, visit } from "./page.ts";

// Every test drives the page that the real binary serves, in Debian's Chromium.

const key = (name: string) => `    - {id: ${name}, sha256: ${createHash("sha256").update(`key-of-${name}`).digest("hex")},`;

const on = stage("session:\n  ttl: 2h\nquota:\n  principal: {sessions: 1}\n");

/** Has the worker give up orders that it cannot read: a command with each id. */
async function give(up: Waggle, tenant: string, ids: readonly string[]): Promise<void> {
  const messages = ids.map((id) => {
    const of = { service: "worker", verb: "do_job", tenant, key: `key-${id}` };
    const body = JSON.stringify({ id, ...of, time: new Date().toISOString(), data: "no order" });
    return { subject: commandSubject(of.service, tenant, of.key, of.verb), body };
  });
  await publish(join(up.dir, "data"), messages);
}

test("tabs have addresses, and keys turn them", async () => {
  const { page, errors } = await visit(on.browser, `${on.waggle.url}/installation`);
  await page.waitForSelector("table.health");
  await page.focus("#tab-health");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => location.pathname === "/installation/queues" && document.activeElement?.id === "tab-queues");
  await page.keyboard.press("End");
  await page.waitForFunction(() => location.pathname === "/installation/versions" && document.querySelector("table.versions"));
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => location.pathname === "/installation/config" && document.querySelector("table.config"));
  await page.keyboard.press("Tab"); // into the panel, where single keys count
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  await page.waitForFunction(() => location.pathname === "/installation/health");
  await page.keyboard.press("[");
  await page.keyboard.press("[");
  await page.waitForFunction(() => document.title === "Configuration · Installation · Waggle");
  await page.waitForSelector(".filters input");
  await page.keyboard.press("/");
  await page.keyboard.type("session.ttl");
  await page.waitForFunction(() => document.querySelectorAll("table.config tbody tr").length === 1);
  expect(await page.textContent("table.config tbody tr")).toContain("2h0m0sfile");
  await page.fill(".filters input[type=search]", "nothing is called this");
  await page.click(".face button");
  await page.waitForFunction(() => document.querySelectorAll("table.config tbody tr").length > 100);
  expect(errors).toEqual([]);
  await page.close();
});

test("the audit log is filtered by what the address says", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await page.fill(".composer textarea", "say hello");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".item.answer");
  const session = new URL(page.url()).pathname.split("/")[2] as string;
  await page.goto(`${on.waggle.url}/installation/audit`);
  await page.waitForSelector("table.audit tbody tr");
  await page.selectOption(".filters select", "command");
  await page.fill('.filters input[aria-label^="Session"]', session);
  await page.waitForFunction((id) => location.search === `?action=command&entity=${id}`, session);
  await page.waitForFunction(() => document.querySelectorAll("table.audit tbody tr").length === 2);
  expect((await page.locator("table.audit td.value").allTextContents()).join()).toContain("pipeline send_message");
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("table.audit tbody tr").length === 2);
  await page.fill('.filters input[aria-label="Principal"]', "somebody");
  await page.waitForSelector(".face");
  await page.click(".face button");
  await page.waitForFunction(() => location.search === "" && document.querySelectorAll("table.audit tbody tr").length > 2);

  await page.click(".verify button");
  await page.waitForSelector(".verify .whole");
  expect(await page.textContent(".verify .whole")).toMatch(/^\d+ records: unbroken/);
  expect(await faults(page)).toEqual([]);

  await page.goto(`${on.waggle.url}/installation/connections`);
  await page.waitForSelector("table.connections tbody tr"); // at least that of this page
  expect(await page.textContent("table.connections tbody")).toContain("announcements");
  expect(await faults(page)).toEqual([]);
  await page.check(".filters input[type=checkbox]");
  await page.waitForFunction(
    () => location.search === "?lagging=true" && document.querySelector(".face h2, .face p")?.textContent?.includes("No connection lags"),
  );
  await page.click(".face button");
  await page.waitForFunction(() => location.search === "" && document.querySelector("table.connections"));

  await page.goto(`${on.waggle.url}/installation/quotas`);
  await page.waitForSelector("table.quotas");
  expect(await page.textContent("table.quotas tbody tr")).toContain("1 of 1used up");
  expect(errors).toEqual([]);
  await page.close();
});

test("checks, rates and versions are those of what runs, and change by themselves", async () => {
  const { page, errors } = await visit(on.browser, `${on.waggle.url}/installation/health`);
  await page.waitForSelector("table.checks tbody tr");
  const checks = await page.locator("table.checks th[scope=row]").allTextContents();
  expect(checks).toEqual(["streams", "replicas", "queues", "dead letters", "clock", "roles", "models", "tool servers"]);
  expect(await page.textContent("table.checks tr:first-child td.value")).toBe("as this version needs them");
  expect(await faults(page)).toEqual([]);

  await page.goto(`${on.waggle.url}/installation/versions`);
  await page.waitForSelector("table.versions tbody tr");
  const roles = await page.locator("table.versions th[scope=row]").allTextContents();
  expect(roles).toEqual(expect.arrayContaining(["gateway", "session", "pipeline", "worker", "task", "tools", "team"]));
  const { version } = await (await fetch(`${on.waggle.url}/api/v1/status`)).json();
  expect(new Set(await page.locator("table.versions td:nth-child(2)").allTextContents())).toEqual(new Set([version]));
  expect(await page.textContent("table.versions td:nth-child(3)")).toMatch(/^go1\./);
  expect(await page.textContent(".page .about")).toMatch(/NATS \d+\.\d+.*All processes have one version/);
  expect(await faults(page)).toEqual([]);

  await page.click('table.versions th[scope=row] a:text-is("worker")');
  await page.waitForFunction(() => location.search === "?role=worker" && document.querySelectorAll("table.versions tbody tr").length === 1);
  expect(await page.textContent("table.versions tbody tr")).toContain("Answers");
  await page.locator("table.queues th", { hasText: "worker" }).waitFor();
  expect(await faults(page)).toEqual([]);
  await page.click("table.versions td a");
  await page.locator("h2", { hasText: "Replica " }).waitFor();
  expect(await page.locator("table.versions th[scope=row] a").allTextContents()).toEqual(expect.arrayContaining(["gateway", "worker"]));

  await page.goto(`${on.waggle.url}/installation/rates`);
  await page.waitForFunction(() =>
    /^\d+(\.\d+)? ms$/.test(document.querySelector("table.rates tr:nth-child(4) td:nth-child(3)")?.textContent ?? ""),
  );
  expect((await page.locator("table.rates th[scope=row]").allTextContents()).join()).toMatch(
    /Requests.*Messages in.*Messages out.*Events.*Deliveries.*Commands.*Model requests/,
  );
  expect(await page.textContent(".sources summary")).toMatch(/^From 1 process: gateway, /);
  expect(await page.locator(".loud").count()).toBe(0);
  expect(await page.textContent("table.rates tr:nth-child(1) td")).toMatch(/^0?\.?\d+(\.\d+)? a second$/);
  expect(await faults(page)).toEqual([]);
  const first = await page.textContent(".asof");
  await page.waitForFunction((old) => document.querySelector(".asof")?.textContent !== old, first);
  expect(errors).toEqual([]);
  await page.close();
});

test("the model is tried when an operator asks for it, one trial after the other", async () => {
  const { page, errors } = await visit(on.browser, `${on.waggle.url}/installation/health`);
  const rows = (n: number) => page.waitForFunction((n) => document.querySelectorAll(".trials tbody tr").length === n, n);
  let release = () => {};
  const held = new Promise<void>((go) => {
    release = go;
  });
  await page.route("**/api/v1/model/trials/1", async (r) => {
    await held;
    await r.continue().catch(() => {}); // the page has given it up
  });
  await page.focus(".trials button");
  await page.keyboard.press("Enter");
  await rows(1);
  expect(await page.textContent(".trials [aria-live=polite] > p")).toBe("Trial 2 of 4 runs…");
  expect(await page.isDisabled(".trials button")).toBe(true);
  expect(await faults(page)).toEqual([]);
  await page.keyboard.press("Enter"); // the button that stops it has the focus
  await page.waitForFunction(() => document.activeElement?.textContent === "Try the model");
  expect(await page.textContent(".trials [aria-live=polite] > p")).toMatch(/^Stopped/);
  release();
  await page.keyboard.press("Enter");
  await rows(4);
  expect(await page.locator(".trials th[scope=row]").allTextContents()).toEqual(["answer", "tool call", "parallel calls", "JSON answer"]);
  expect(await page.locator(".trials .chip").allTextContents()).toEqual(["Warning", "Missing", "Warning", "Missing"]);
  expect(await page.textContent(".trials tbody tr:nth-child(2) td.value")).toMatch(
    /called no tool.*start the server with calls of tools.*demo · /,
  );
  expect(await faults(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollHeight - innerHeight)).toBe(0);

  await page.unroute("**/api/v1/model/trials/1");
  await page.route("**/api/v1/model/trials/2", (r) => r.abort(), { times: 1 });
  await page.click(".trials button");
  await page.click(".trials .face.error button"); // goes on where it was
  await rows(4);
  expect(errors).toEqual([]);
  await page.close();
});

test("only operators see more than health and their own quotas, and no other tenant's", async () => {
  const server = await up(`auth:
  api_keys:
${key("ann")} tenant: acme, roles: [user]}
${key("olga")} tenant: acme, roles: [operator]}
${key("otto")} tenant: other, roles: [operator]}
`);
  await give(server, "acme", ["theirs"]);
  for (const [who, sees] of [
    ["ann", "For operators only"],
    ["olga", "cannot unmarshal string"],
    ["otto", "No dead letters"],
  ] as const) {
    const { page } = await visit(on.browser, `${server.url}/installation/dead`);
    await page.waitForSelector("dialog.login[open]");
    await page.fill('dialog input[type="password"]', `key-of-${who}`);
    await page.keyboard.press("Enter");
    await page.waitForFunction((text) => document.querySelector("#view")?.textContent?.includes(text), sees);
    const tabs = await page.locator('[role="tab"]').allTextContents();
    expect(tabs.length).toBe(who === "ann" ? 2 : 9);
    if (who === "ann") {
      await page.click("#tab-quotas");
      await page.waitForSelector("table.quotas");
      await page.click("#tab-health");
      await page.waitForSelector("table.health");
      expect(await page.locator(".trials, table.checks").count()).toBe(0);
    }
    await page.close();
  }
  await server.end();
});

test("what cannot be read says why, and is read again", async () => {
  const server = await up();
  const { page } = await visit(on.browser, server.url);
  await page.route("**/api/v1/queues", (r) => r.abort());
  await page.goto(`${server.url}/installation/queues`);
  await page.waitForSelector(".face.error");
  expect(await faults(page)).toEqual([]);
  await page.unroute("**/api/v1/queues");
  await page.click(".face.error button");
  await page.waitForSelector("table.queues");
  await server.kill();
  await page.click(".asof button");
  await page.waitForSelector(".asof .fault"); // the figures stay
  expect(await page.locator("table.queues tbody tr").count()).toBe(7);
  await server.restart();
  await page.waitForFunction(() => !document.querySelector(".asof .fault")); // without a click: the gateway is back
  await page.close();
  await server.end();
});

test("every tab is accessible, in light and dark, wide and narrow", async () => {
  await give(on.waggle, "default", ["three"]);
  for (const [colorScheme, size] of [
    ["light", { width: 1300, height: 850 }],
    ["dark", { width: 380, height: 760 }],
  ] as const) {
    const { page, errors } = await visit(on.browser, on.waggle.url, size);
    await page.emulateMedia({ colorScheme });
    for (const tab of ["health", "queues", "dead", "quotas", "audit", "config"]) {
      await page.goto(`${on.waggle.url}/installation/${tab}`);
      await page.waitForSelector(".asof");
      expect(await faults(page), `${tab} ${colorScheme}`).toEqual([]);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wide, `${tab} scrolls sideways`).toBeLessThanOrEqual(0);
      const long = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
      expect(long, `${tab} scrolls its surroundings`).toBeLessThanOrEqual(0);
    }
    expect(errors).toEqual([]);
    await page.close();
  }
});
