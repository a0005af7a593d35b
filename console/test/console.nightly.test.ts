import { defineAgent } from "@waggle-dev/client/swarm";
import { expect, test } from "vitest";
import { Model, up } from "../../sdk/typescript/testing/server.ts";
import { ask, faults, stage, violations, visit } from "./page.ts";

// Every test drives the page that the real binary serves, in Debian's Chromium.

const on = stage();

test("an agent of the swarm answers in place of the model", async () => {
  const agent = await defineAgent<{ content: string; history?: unknown[] }>({
    name: "shouter",
    run: (task) => `${task.data.content.toUpperCase()} ${task.data.history?.length ?? 0}`,
  }).serve({ url: on.waggle.url });
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await page.selectOption('.composer select[aria-label="Who answers"]', "shouter");
  expect(await page.getAttribute(".composer textarea", "placeholder")).toBe("Message shouter");
  expect(await faults(page)).toEqual([]);
  await ask(page, "bees");
  await page.waitForFunction(() => document.querySelector(".talk")?.textContent?.includes("BEES 0"));
  await ask(page, "more");
  await page.waitForFunction(() => document.querySelector(".talk")?.textContent?.includes("MORE 2"));
  await page.selectOption('.composer select[aria-label="Who answers"]', "");
  await ask(page, "What is 6 * 7?");
  await page.waitForFunction(() => document.querySelector(".talk")?.textContent?.includes("42"));
  await agent.stop();
  await page.reload();
  await page.waitForFunction(() => document.querySelector(".talk")?.textContent?.includes("42"));
  expect(errors).toEqual([]);
  await page.close();
});

test("a step that is carried out again after the end of its run has its title", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await page.click(".ideas li:nth-child(2) button");
  await page.click('[data-answer="approve"]');
  await page.waitForFunction(() => document.body.textContent?.includes("3 of 3 steps done"));
  const id = new URL(page.url()).pathname.split("/")[2];
  const api = `${on.waggle.url}/api/v1`;
  const { events } = await (await fetch(`${api}/logs/session/${id}/events?types=run.started,plan.completed`)).json();
  const [{ run_id }, { steps }] = events.map((e: { data: object }) => e.data);
  const last = () => page.locator(".steps").nth(1).locator(".step > summary .title").allTextContents();
  await fetch(`${api}/sessions/${id}/runs/${run_id}/steps/${steps[0].id}/restart`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ id: "again" }),
  });
  await page.waitForSelector(".steps >> nth=1");
  expect(await last()).toEqual([steps[0].title]);
  await page.reload();
  await page.waitForSelector(".steps >> nth=1");
  expect(await last()).toEqual([steps[0].title]);
  expect(errors).toEqual([]);
  await page.close();
});

test("lists and questions are live, and two people answer one question once", async () => {
  const list = await visit(on.browser, `${on.waggle.url}/questions`);
  const one = await visit(on.browser, on.waggle.url);
  await one.page.click(".ideas li:nth-child(2) button");
  await one.page.waitForSelector(".question");
  await list.page.waitForSelector(".cards .question");
  await list.page.waitForFunction(() => document.title === "(1) Questions · Waggle");
  expect(await list.page.textContent("nav .badge")).toBe("1");
  await list.page.click('[data-answer="reject"]');
  await one.page.waitForFunction(() => !document.querySelector(".question"));
  await list.page.waitForFunction(() => document.body.textContent?.includes("Nothing waits for you"));
  await list.page.goto(`${on.waggle.url}/sessions`);
  await list.page.waitForSelector(".sessions .row");
  const count = await list.page.locator(".sessions .row").count();
  await one.page.goto(on.waggle.url);
  await ask(one.page, "say hello");
  await list.page.waitForFunction((n) => document.querySelectorAll(".sessions .row").length === n + 1, count);
  await list.page.click(".sessions .row >> nth=1");
  await list.page.waitForSelector(".session .head");
  const shown = list.page.url();
  await list.page.click(".sessions .row >> nth=0");
  await list.page.waitForFunction((url) => location.href !== url, shown);
  expect([...list.errors, ...one.errors]).toEqual([]);
  await list.page.close();
  await one.page.close();
});

test("every room is accessible, in light and dark, wide and narrow", async () => {
  const first = await visit(on.browser, on.waggle.url);
  await ask(first.page, "what does notes.md say?");
  const session = new URL(first.page.url()).pathname;
  await first.page.goto(`${on.waggle.url}/teams`);
  await first.page.click(".actions button");
  await first.page.waitForSelector(".team .member");
  const team = new URL(first.page.url()).pathname;
  await first.page.close();
  for (const [colorScheme, size] of [
    ["light", { width: 1300, height: 850 }],
    ["dark", { width: 380, height: 760 }],
  ] as const) {
    for (const path of [
      "/",
      "/sessions",
      session,
      `${session}?view=trace`,
      `${session}?view=log`,
      `${session}?at=3`,
      "/questions",
      "/teams",
      team,
      "/swarm",
      "/installation",
      "/swarm/nothing",
    ]) {
      const { page } = await visit(on.browser, on.waggle.url, size);
      await page.emulateMedia({ colorScheme });
      await page.goto(on.waggle.url + path, { waitUntil: "domcontentloaded" });
      await page.waitForSelector("main :is(h1, h2, .item, .bar)");
      if (path.startsWith(team)) await page.waitForSelector(".team :is(.member, .face)", { state: "attached" });
      expect(await faults(page), `${path} ${colorScheme}`).toEqual([]);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wide, `${path} scrolls sideways`).toBeLessThanOrEqual(0);
      await page.close();
    }
  }
});

test("keys go anywhere: rooms, the palette, views", async () => {
  const { page } = await visit(on.browser, `${on.waggle.url}/sessions`);
  await page.waitForSelector(".rows");
  await page.focus(".rows");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session .head");
  await page.keyboard.press("]");
  await page.waitForFunction(() => location.search.includes("view=trace"));
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.waitForFunction(() => location.pathname === "/installation/health");
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog.palette[open]");
  await page.keyboard.type("questions");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.pathname === "/questions");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog.keys[open]");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await page.close();
});

test("what others have written is text: nothing of it runs, hides or breaks the page", async () => {
  const hostile = [
    "# Title\n\n<img src=x onerror=alert(1)><script>alert(2)</script>",
    "[click](javascript:alert(3)) [bank](https://evil.example/) ![p](https://evil.example/p.png)",
    `${">".repeat(200)} deep ${"*a_".repeat(2000)}`,
    "\u202egnp.exe \u001b[31mred\u001b[0m \u200bzero",
    `| a | b |\n|---|---|\n| ${"x".repeat(3000)} | \`<b>\` |`,
    "x".repeat(100_000),
  ].join("\n\n");
  const model = await Model.start(() => ({ text: hostile }));
  const server = await up("", model.env);
  const { page, errors } = await visit(on.browser, server.url);
  const asked: string[] = [];
  page.on("request", (q) => asked.push(q.url()));
  page.on("dialog", (d) => {
    errors.push(`dialog ${d.message()}`);
    void d.dismiss();
  });
  await page.evaluate(() => {
    const reports: string[] = [];
    (window as unknown as { reports: string[] }).reports = reports;
    document.addEventListener("securitypolicyviolation", (e) => reports.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  await ask(page, "<b>bold</b> \u202eabc");
  await page.waitForSelector(".markdown a");
  expect(await page.evaluate(() => (window as unknown as { reports: string[] }).reports)).toEqual([]);
  expect(await page.locator(".item.answer :is(img, script, b, iframe, object, svg)").count()).toBe(0);
  expect(await page.locator(".item.user b").count()).toBe(0);
  expect(await page.textContent(".item.user .said")).toContain("⟨U+202E⟩");
  expect(await page.locator('.markdown a[href^="javascript"]').count()).toBe(0);
  expect(await page.textContent(".markdown")).toContain("bank (evil.example)");
  expect(await page.textContent(".markdown")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  expect(asked.filter((u) => !u.startsWith(server.url))).toEqual([]);
  expect(errors).toEqual([]);
  expect(await violations(server)).toEqual({});

  const reported = page.waitForResponse((r) => r.url() === `${server.url}/api/v1/csp-reports`);
  await page.evaluate(() => document.body.append(Object.assign(new Image(), { src: "https://evil.example/p.png" })));
  expect((await reported).status()).toBe(204);
  expect(await violations(server)).toEqual({ "img-src": 1 });
  await page.close();
  await server.end();
  model.end();
});

test("a text of very many elements is shown in parts", async () => {
  const paragraphs = Array.from({ length: 6000 }, (_, i) => `- ${i} **x** \u{1f41d}`).join("\n");
  const model = await Model.start(() => ({ text: paragraphs.replaceAll(" ", "\u00a0").replaceAll("-\u00a0", "- ") }));
  const own = await up("", model.env);
  const { page, errors } = await visit(on.browser, own.url);
  await ask(page, "write much");
  const elements = () => page.locator(".item.answer .markdown *").count();
  const first = await elements();
  expect(first).toBeGreaterThan(1000);
  expect(first).toBeLessThan(3600);
  await page.click(".item.answer .markdown + button");
  await page.waitForFunction((n) => document.querySelectorAll(".item.answer .markdown *").length > n, first);
  expect(await elements()).toBeLessThan(7200);
  for (let more = 0; await page.locator(".item.answer .markdown + button").count(); more++) {
    expect(more).toBeLessThan(20);
    await page.click(".item.answer .markdown + button");
  }
  await page.waitForFunction(() => document.querySelector(".item.answer .markdown")?.textContent?.includes("5999"));
  expect(await page.textContent(".item.answer .markdown")).not.toContain("\ufffd");
  expect(errors).toEqual([]);
  await page.close();
  await own.end();
  model.end();
});

test("an installation with keys asks for one, shows what its role may see, and forgets it", async () => {
  const { createHash } = await import("node:crypto");
  const sha = (key: string) => createHash("sha256").update(key).digest("hex");
  const server = await up(`auth:
  api_keys:
    - {id: ann, sha256: ${sha("key-of-ann")}, tenant: acme, roles: [user]}
    - {id: eve, sha256: ${sha("key-of-eve")}, tenant: acme, roles: [viewer]}
    - {id: bob, sha256: ${sha("key-of-bob")}, tenant: other, roles: [user]}
`);
  const { page } = await visit(on.browser, server.url);
  await page.waitForSelector("dialog.login[open]");
  await page.fill('dialog input[type="password"]', "wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog .fault");
  await page.fill('dialog input[type="password"]', "key-of-ann");
  await page.check("dialog input[type=checkbox]");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await ask(page, "say hello");
  const own = page.url();
  await page.reload(); // the key stays in the tab
  await page.waitForSelector(".item.answer");
  expect(await page.evaluate(() => [localStorage, document.cookie].map((s) => JSON.stringify(s)).join(" "))).not.toContain("key-of-ann");

  for (const [key, sees] of [
    ["key-of-eve", ".item.answer"], // a viewer sees all of the tenant
    ["key-of-bob", ".face"], // another tenant sees nothing of it
  ] as const) {
    const other = await visit(on.browser, own);
    await other.page.waitForSelector("dialog.login[open]");
    await other.page.fill('dialog input[type="password"]', key);
    await other.page.keyboard.press("Enter");
    await other.page.waitForSelector(`.split > :last-child:is(${sees}), .session ${sees}`);
    const text = await other.page.textContent("main");
    if (key === "key-of-eve") await other.page.waitForSelector(".view-only");
    else expect(text).toContain("No such session");
    await other.page.close();
  }
  await page.click("nav .account");
  await page.click('.account-menu button:has-text("Sign out")');
  await page.waitForSelector("dialog.login[open]");
  await page.close();
  await server.end();
});

test("what is being written is shown as a program in four languages", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.fill(".composer textarea", "count the words");
  await page.click('button[aria-label="Show this request as code"]');
  for (const language of ["TypeScript", "Python", "Go", "curl"]) {
    await page.click(`dialog .segments label:text-is("${language}")`);
    await page.waitForFunction(
      (l) => document.querySelector("dialog .segments .on")?.textContent === l && document.querySelector("dialog pre"),
      language,
    );
    expect(await page.textContent("dialog pre")).toContain("count the words");
    expect(await faults(page)).toEqual([]);
  }
  await page.click("dialog button.primary");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).includes("count the words"));
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  expect(await page.inputValue(".composer textarea")).toBe("count the words");
  expect(errors).toEqual([]);
  await page.close();
});

test("without a provider the page shows no button to sign in there", async () => {
  const { createHash } = await import("node:crypto");
  const hash = createHash("sha256").update("secret").digest("hex");
  const own = await up(`auth:\n  api_keys:\n    - {id: ann, sha256: ${hash}, tenant: default, roles: [user]}\n`);
  expect(await (await fetch(`${own.url}/api/v1/console`)).json()).toEqual({});
  const { page } = await visit(on.browser, "about:blank");
  const asked = page.waitForResponse(`${own.url}/api/v1/console`);
  await page.goto(own.url);
  await page.waitForSelector("dialog.login");
  await (await asked).finished();
  await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
  expect(await page.locator('dialog.login button:has-text("Sign in at")').count()).toBe(0);
  await page.close();
  await own.end();
});
