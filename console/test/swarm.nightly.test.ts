import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { defineAgent, defineService, defineTool } from "@waggle-dev/client/swarm";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { faults, stage, visit } from "./page.ts";

// Every test drives the page that the real binary serves, in Debian's Chromium, with real agents and services.

const key = (name: string) => `key-of-${name}`;
const entry = (name: string, role: string) =>
  `    - {id: ${name}, sha256: ${createHash("sha256").update(key(name)).digest("hex")}, subject: ${name}, tenant: default, roles: [${role}]}`;
const keys = [entry("ann", "user"), entry("vera", "viewer"), entry("bot", "agent"), entry("shop", "service")];

const broken = `tools:\n  servers:\n    - {name: broken, command: [/bin/sh, -c, 'echo "fatal: set API_KEY" >&2; exit 2']}\n`;

const on = stage(`  peers: {grace: 1s}\ntask:\n  pause: 1s\n${broken}auth:\n  api_keys:\n${keys.join("\n")}\n`);

/** Opens a page as somebody. */
async function visitAs(who: string, path: string, size?: { width: number; height: number }): Promise<{ page: Page; errors: string[] }> {
  const v = await visit(on.browser, on.waggle.url, size);
  await v.page.waitForSelector("dialog.login");
  await v.page.evaluate((token) => sessionStorage.setItem("waggle.token", token), key(who));
  await v.page.goto(on.waggle.url + path);
  v.errors.length = 0; // what was refused before the key was there
  return v;
}

/** Makes a request to the API as ann. */
async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const r = await fetch(on.waggle.url + path, {
    method,
    headers: { authorization: `Bearer ${key("ann")}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(r.ok, `${path} ${r.status}`).toBe(true);
  return (await r.json()) as T;
}

const field = (page: Page, at: string) => page.locator(`.field[data-at="${at}"] > :is(input, select, textarea)`);
const chip = (page: Page, where: string, text: string) =>
  page.waitForFunction(([w, x]) => document.querySelector(`${w} .chip`)?.textContent?.includes(x as string), [where, text]);

test("the list of tools and the health say why a tool server is down", async () => {
  for (const path of ["/swarm/tools", "/installation/health"]) {
    const { page, errors } = await visitAs("ann", path);
    await page.waitForFunction(() => document.body.textContent?.includes("fatal: set API_KEY"));
    expect(await page.textContent("table.health:has-text('broken')")).toContain("the program ended: exit status 2. Its last words:");
    expect(await faults(page)).toEqual([]);
    expect(errors).toEqual([]);
    await page.context().close();
  }
});

test("a tool is called from a form of its schema, and the outcome stays in the address", async () => {
  const { page, errors } = await visitAs("ann", "/swarm/tools");
  await page.click('a[href="/swarm/tools/workspace/read_file"]');
  await page.waitForSelector(".try form");
  expect(await page.textContent(".who")).toContain("Models: yes, on their own.");
  await page.click('.try button[type="submit"]');
  await page.waitForSelector('.field[data-at="/path"] .fault');
  expect(await page.textContent('.field[data-at="/path"] .fault')).toBe("This is required.");
  await field(page, "/path").fill("notes.md");
  await page.click('.segments label:has-text("JSON")');
  expect(JSON.parse(await page.inputValue(".try textarea"))).toEqual({ path: "notes.md" });
  await page.fill(".try textarea", "{");
  await page.click('.try button[type="submit"]');
  await page.waitForSelector(".try .field .fault");
  await page.fill(".try textarea", '{"path": "notes.md"}');
  await page.click('.segments label:has-text("Form")');
  expect(await field(page, "/path").inputValue()).toBe("notes.md");
  await page.click('.try button[type="submit"]');
  await chip(page, ".outcome", "Completed");
  expect(await page.textContent(".outcome .code")).toContain("buy milk");
  expect(new URL(page.url()).searchParams.get("call")).toBeTruthy();
  expect(await faults(page)).toEqual([]);
  const before = await page.textContent(".outcome .code");
  await page.reload();
  await chip(page, ".outcome", "Completed");
  expect(await page.textContent(".outcome .code")).toBe(before);
  expect(await page.locator(".outcome .events li").count()).toBe(2);
  expect(errors).toEqual([]);
  await page.close();
});

test("a form begins with the defaults, names the first wrong field, and its call is copied as curl and made", async () => {
  const shop = await defineService({
    name: "shop",
    id: "shop",
    tools: [
      defineTool({
        id: "order",
        idempotent: true,
        inputSchema: {
          type: "object",
          required: ["code", "size"],
          properties: {
            code: { type: "string", pattern: "^[A-Z]{2}-\\d$" },
            size: {
              oneOf: [
                { const: 1, title: "Small" },
                { const: 2, title: "Large" },
              ],
              default: 2,
            },
            at: { type: "string", format: "date-time" },
          },
        },
        run: (given) => given,
      }),
    ],
  }).serve({ url: on.waggle.url, token: key("shop") });
  const { page, errors } = await visitAs("ann", "/swarm/tools/shop/order?kind=service");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.waitForSelector(".try form");
  expect(await field(page, "/size").evaluate((x: HTMLSelectElement) => x.selectedOptions[0]?.textContent)).toBe("Large");
  await field(page, "/code").fill("ab");
  await page.click('.try button[type="submit"]');
  await page.waitForFunction(() => document.activeElement?.closest(".field")?.getAttribute("data-at") === "/code");
  expect(await page.textContent('.field[data-at="/code"] .fault')).toBe("This does not match the pattern.");
  await field(page, "/code").fill("AB-1");
  await field(page, "/at").fill("2026-01-31T14:00:00");
  await page.click('.try button:has-text("curl")');
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("curl"));
  const command = await page.evaluate(() => navigator.clipboard.readText());
  const out = await new Promise<string>((go, no) =>
    execFile("bash", ["-c", command], { env: { ...process.env, WAGGLE_TOKEN: key("ann"), NO_PROXY: "127.0.0.1" } }, (error, said) =>
      error ? no(error) : go(said),
    ),
  );
  const { result } = JSON.parse(out) as { result: { code: string; size: number; at: string } };
  expect(result).toMatchObject({ code: "AB-1", size: 2 });
  expect(Date.parse(result.at)).toBe(await page.evaluate(() => new Date("2026-01-31T14:00:00").getTime()));
  await page.click('.try button[type="submit"]');
  await chip(page, ".outcome", "Completed");
  expect(JSON.parse((await page.textContent(".outcome .code")) ?? "")).toEqual(result);
  expect(await page.locator(".outcome .events code").allTextContents()).toEqual(["call.started", "call.finished"]);
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  await shop.stop();
  await page.close();
});

test("a task's page tells who does it, what was called and asked, and why it failed", async () => {
  const agent = await defineAgent({
    name: "clerk",
    run: async (task) => {
      await task.callMcp("workspace", "read_file", { path: "notes.md" });
      const quarter = await task.ask("Which quarter?", { options: ["Q1", "Q2"] });
      throw new Error(`No figures of ${quarter}.`);
    },
  }).serve({ url: on.waggle.url, token: key("bot") });
  const { task_id } = await api<{ task_id: string }>("POST", "/api/v1/tasks", { agent_name: "clerk", task_type: "report", data: {} });
  const { page, errors } = await visitAs("ann", `/swarm/tasks/${task_id}`);
  await page.waitForSelector(".task .question");
  await chip(page, ".head", "Needs an answer");
  const facts = (await page.textContent(".head .facts")) ?? "";
  for (const fact of ["clerk", "so far", "by ann"]) expect(facts).toContain(fact);
  await page.fill(".question footer input", "Q2");
  await page.click('.question [data-answer="approve"]');
  await page.waitForSelector(".failure");
  const failure = (await page.textContent(".failure")) ?? "";
  for (const part of ["The agent failed", "No figures of Q2.", "then retry"]) expect(failure).toContain(part);
  const rows = await page.locator(".attempts .entries-of > li").allTextContents();
  expect(rows.map((r) => r.split(/(?<=call|Question)/)[0])).toEqual(["Tool call", "Question"]);
  expect(rows[1]).toContain("Q2");
  expect(await page.locator(".head .scrubber .marks path.failed").getAttribute("d")).not.toBe("");
  expect(await faults(page)).toEqual([]);
  await page.click("#tab-trace");
  await page.waitForFunction(() => document.querySelectorAll('.trace [role="treeitem"]').length === 4);
  expect(await page.locator('.trace [role="treeitem"]').evaluateAll((all) => all.map((x) => x.getAttribute("aria-level")))).toEqual([
    "1",
    "2",
    "3",
    "3",
  ]);
  expect(await faults(page)).toEqual([]);
  for (const view of ["work", "trace"])
    for (const scheme of ["light", "dark"] as const) {
      await page.setViewportSize({ width: 380, height: 780 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.click(`#tab-${view}`);
      expect(await faults(page), `${view} ${scheme}`).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    }
  expect(errors).toEqual([]);
  await agent.stop();
  await page.close();
});

/** A service in a process of its own, which never ends a call. */
const service = `
import { defineService, defineTool } from "@waggle-dev/client/swarm";
const pay = defineTool({
  id: "pay",
  description: "Pays an amount.",
  inputSchema: {
    type: "object",
    required: ["amount"],
    properties: { amount: { type: "integer", minimum: 1 }, code: { type: "string", pattern: "^([A-Z]+)+$" } },
  },
  run: () => {
    console.log("called");
    return new Promise(() => {});
  },
});
await defineService({ name: "till", id: "till", tools: [pay] }).serve({ url: process.env.WAGGLE_URL, token: process.env.WAGGLE_TOKEN });
console.log("ready");
`;

test("a service that dies during a call leaves its outcome unknown, and one that refuses an argument names it", async () => {
  const till = spawn(process.execPath, ["--input-type=module", "-e", service], {
    cwd: new URL("..", import.meta.url),
    env: { ...process.env, WAGGLE_URL: on.waggle.url, WAGGLE_TOKEN: key("shop") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  const says = (word: string) =>
    new Promise<void>((go, fail) => {
      const look = () => said.includes(word) && go();
      till.once("exit", (code) => fail(new Error(`the service ended with ${code}`)));
      till.stdout.on("data", look);
      look();
    });
  till.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await says("ready");
  const { page } = await visitAs("ann", "/swarm/tools/till/pay?kind=service");
  await field(page, "/amount").fill("0");
  await page.click('.try button[type="submit"]');
  await page.waitForSelector('.field[data-at="/amount"] .fault');
  await field(page, "/amount").fill("5");
  await field(page, "/code").fill("chf");
  await page.click('.try button[type="submit"]');
  await page.waitForSelector('.field[data-at="/code"] .fault'); // the server holds the call to a pattern that a browser does not test
  expect(said).not.toContain("called");
  await field(page, "/code").fill("CHF");
  await page.click('.try button[type="submit"]');
  await says("called");
  till.kill("SIGKILL");
  await chip(page, ".outcome", "Outcome unknown");
  expect(await page.textContent(".outcome .loud")).toContain("not known");
  const gone = page.url().replace("/till/pay", "/till/gone"); // the address of the call leads to its outcome when the tool has gone, too
  await page.goto(gone);
  await page.waitForSelector(".tool-page .face");
  await chip(page, ".outcome", "Outcome unknown");
  expect(said.match(/called/g)).toHaveLength(1);
  await page.close();
});

test("a task shows its attempts after its agent was lost, and is cancelled and retried", async () => {
  const holds: string[] = [];
  let had: () => void = () => {};
  const agent = (id: string) =>
    defineAgent({
      name: "digger",
      id,
      run: (task) => {
        holds.push(`${id} ${task.id}`);
        had();
        return new Promise(() => {});
      },
    }).serve({ url: on.waggle.url, token: key("bot") });
  const next = () =>
    new Promise<void>((go) => {
      had = go;
    });
  const first = await agent("one");
  let has = next();
  const { page, errors } = await visitAs("ann", "/swarm/tasks");
  const { task_id } = await api<{ task_id: string }>("POST", "/api/v1/tasks", {
    agent_name: "digger",
    task_type: "dig",
    data: { deep: 3 },
  });
  await has;
  await page.click('th a:has-text("dig")');
  await page.waitForFunction(() => document.querySelectorAll(".attempts > li").length === 1);
  has = next();
  const second = await agent("two");
  await first.stop();
  await has;
  await page.waitForFunction(() => document.querySelectorAll(".attempts > li").length === 2);
  expect(await page.textContent(".attempts > li:first-child")).toContain("lost it");
  expect(await page.textContent(".attempts > li:last-child")).toContain("has it");
  expect(await faults(page)).toEqual([]);
  await page.click("#tab-trace");
  await page.waitForFunction(() => document.querySelectorAll(".trace .kind-job").length === 2);
  await page.click("#tab-log");
  await page.waitForFunction(() => document.body.textContent?.includes("task.released"));
  await page.click("#tab-work");

  // In the past the first agent has it, and nobody acts.
  const link = page.url();
  await page.focus('.scrubber input[type="range"]');
  await page.keyboard.press("PageUp");
  await page.waitForSelector(".task.past");
  expect(await page.locator('button[aria-label="Cancel"]').count()).toBe(0);
  await page.goto(link.split("?")[0] as string);
  await page.click('button[aria-label="Cancel"]');
  await chip(page, ".head", "Cancelled");
  has = next();
  await page.click('button[aria-label="Retry"]');
  await has;
  await page.waitForFunction((old) => document.querySelector(".origin")?.textContent?.includes(old), task_id);
  expect(page.url()).not.toContain(task_id);
  await chip(page, ".head", "Running");
  expect(holds.length).toBe(3);
  await page.goto(`${on.waggle.url}/swarm/tasks`);
  await page.waitForFunction(
    () => [...document.querySelectorAll("table.tasks tbody tr")].filter((r) => r.textContent?.includes("digger")).length === 2,
  );
  expect(await page.textContent("table.tasks")).toContain("Cancelled");
  expect(errors).toEqual([]);
  await second.stop();
  await page.close();
});

test("the log of a session leads to the task of the agent that answers", async () => {
  const agent = await defineAgent({ name: "echo", run: () => "heard" }).serve({ url: on.waggle.url, token: key("bot") });
  const { session_id } = await api<{ session_id: string }>("POST", "/api/v1/sessions", {});
  await api("POST", `/api/v1/sessions/${session_id}/messages`, { content: "hello", agent: "echo" });
  const { page, errors } = await visitAs("ann", `/sessions/${session_id}?view=trace`);
  await page.click(".trace .kind-job .name");
  await page.click('.detail a:has-text("Open the task")');
  await page.waitForSelector(".attempts > li");
  expect(await page.textContent(".origin")).toContain(session_id);
  expect(errors).toEqual([]);
  await agent.stop();
  await page.close();
});

test("a viewer sees all of it, and acts nowhere", async () => {
  const agent = await defineAgent({ name: "quiet", id: "quiet", run: () => new Promise(() => {}) }).serve({
    url: on.waggle.url,
    token: key("bot"),
  });
  const { task_id } = await api<{ task_id: string }>("POST", "/api/v1/tasks", { agent_name: "quiet", data: 1 });
  const { page, errors } = await visitAs("vera", `/swarm/tasks/${task_id}`);
  await page.waitForSelector(".attempts > li");
  expect(await page.locator('button[aria-label="Cancel"]').count()).toBe(0);
  await page.goto(`${on.waggle.url}/swarm/tools/workspace/read_file`);
  await page.waitForSelector(".tool-page");
  expect(await page.locator('.try button[type="submit"]').count()).toBe(0);
  expect(await page.textContent(".try")).toContain("Ask for the user role");
  expect(errors).toEqual([]);
  await page.goto(`${on.waggle.url}/swarm/tasks/nothing`);
  await page.waitForSelector(".face");
  await agent.stop();
  await page.close();
});

test("nothing is out of reach: in light and dark, on a wide page and a narrow one", async () => {
  for (const scheme of ["light", "dark"] as const) {
    for (const size of [undefined, { width: 380, height: 780 }]) {
      const { page } = await visitAs("ann", "/swarm", size);
      await page.emulateMedia({ colorScheme: scheme });
      for (const path of ["", "/providers", "/tools", "/tasks", "/tools/workspace/write_file"]) {
        await page.goto(`${on.waggle.url}/swarm${path}`);
        await page.waitForSelector(".swarm :is(tbody tr, .try, .agents > li)");
        expect(await faults(page), `${scheme} ${path}`).toEqual([]);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(over, `${scheme} ${path} scrolls sideways`).toBeLessThanOrEqual(0);
      }
      await page.close();
    }
  }
});
