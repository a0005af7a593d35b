import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type CanonicalEvent, type TeamView, WaggleClient } from "@waggle-dev/client";
import { defineAgent } from "@waggle-dev/client/swarm";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { Model, maxWait, type Reply, up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { commandSubject, publish } from "./bus.ts";
import { faults, removals, violations, visit } from "./page.ts";
import { client as oidcClient, Provider } from "./provider.ts";

// What a user would miss first, in Debian's Chromium with the page of the real binary: one browser, one server, one model that
// answers as its script says. Everything else about the page is in tests without a browser, or in those of the night.

const words = Array.from({ length: 80 }, (_, i) => `word${i}`).join(" ");

/** What others may have written into a file, or have a model say. */
const hostile = [
  "# Written\n\n<img src=x onerror=alert(1)><script>alert(2)</script>",
  "[click](javascript:alert(3)) [bank](https://evil.example/) ![p](https://evil.example/p.png)",
  `${">".repeat(200)} deep ${"*a_".repeat(500)}`,
  "\u202egnp.exe \u001b[31mred\u001b[0m \u200bzero",
  `| a | b |\n|---|---|\n| ${"x".repeat(1000)} | \`<b>\` |`,
].join("\n\n");

const answer = [
  "# One\n\nIt costs $5, or $x = 2$, as a[0] says, with an open [bracket",
  "### Three\n\n| Name | Price |\n|:---|---:|\n| tea | 3.50 |",
  "```python\nprint(1)\n```",
  "- [ ] open\n- [x] shut",
  "3. run\n\n   ```\n   npm ci\n   ```\n\n4. stop\n    - now\n\n   or 5*3 later",
  "`max_size_mb`: the max_size_mb of task_0001 is _small_, see [the_page](https://a.example/b_c_d) and https://a.example/x_y_z",
].join("\n\n");

/** Lead puts two tasks on the board, of which the second needs the first, and writes to the nested team. */
const publication: Reply = {
  calls: [
    {
      name: "create_tasks",
      args: {
        tasks: [
          { task_name: "write", assignee_name: "Writer", description: "write hello.md" },
          { task_name: "check", assignee_name: "desk", description: "check hello.md", dependencies: ["write"] },
        ],
      },
    },
    { name: "send_message_to", args: { recipient_name: "desk", content: "get ready to check hello.md" } },
  ],
};

function script(messages: { role: string; content: unknown }[], planning: boolean): Reply {
  if (planning) {
    const tasks = ["Which files\u202e are there", "How many words are there", "What is 128 * 46"].map((title, i) => ({
      id: `task_${i + 1}`,
      title,
      description: title,
      dependencies: [],
      priority: 0,
      capability: "",
    }));
    return { text: JSON.stringify({ reasoning: "Three parts.", summary: "The request has 3 parts.", tasks }) };
  }
  const asked = String(messages.findLast((m) => m.role === "user")?.content ?? "");
  if (messages.at(-1)?.role === "tool") {
    if (asked.includes("hostile.md")) return { text: hostile };
    return { text: asked.includes("publish") ? "Everybody has their work." : "The file is written." };
  }
  if (asked.includes("publish hello")) return publication;
  const [path] = /hello\.md|hostile\.md/.exec(/^(?=[\s\S]*write)[\s\S]*/.exec(asked)?.[0] ?? "") ?? [];
  if (path && !asked.includes("check")) return { calls: [{ name: "workspace_write_file", args: { path, content: "hello\n" } }] };
  if (asked.includes("the broken model") && on.broken) {
    on.broken = false;
    return { status: 400 };
  }
  if (asked.includes("in Markdown")) return { text: answer };
  if (asked.includes("slowly")) return { text: words, pauseMs: 40 };
  return { text: `I have read it: ${asked.slice(-40)}` };
}

const on = { broken: true } as { browser: Browser; provider: Provider; model: Model; waggle: Waggle; broken: boolean };
const key = "key-of-ann";

beforeAll(async () => {
  [on.browser, on.provider, on.model] = await Promise.all([launch(), Provider.start(), Model.start(script)]);
  const shaOf = (key: string) => createHash("sha256").update(key).digest("hex");
  const sha256 = shaOf(key);
  on.waggle = await up(
    `auth:
  api_keys:
    - {id: ann, sha256: ${sha256}, subject: ann, tenant: default, roles: [user, operator, agent]}
    - {id: vera, sha256: ${shaOf("key-of-vera")}, subject: vera, tenant: default, roles: [viewer]}
  jwt: {issuer: "${on.provider.url}", audience: waggle, jwks_url: "${on.provider.url}/keys"}
  oidc: {client_id: ${oidcClient}, scopes: [openid, offline_access]}
`,
    { ...on.model.env, WAGGLE_TOOLS_BUILTIN_APPROVAL: "writes" },
  );
});
afterAll(async () => {
  await on.browser?.close();
  if (on.waggle) expect(await violations(on.waggle)).toEqual({}); // no page has broken the policy
  await on.waggle?.end();
  on.provider?.end();
  on.model?.end();
});

/** Opens a page, as ann unless a key says otherwise. */
async function enter(path: string, by = key): Promise<{ page: Page; errors: string[] }> {
  const { page, errors } = await visit(on.browser, "about:blank");
  await page.addInitScript((token) => sessionStorage.setItem("waggle.token", token), by);
  await page.goto(on.waggle.url + path);
  return { page, errors };
}

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${on.waggle.url}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** Writes a message into the composer and sends it. */
async function send(page: Page, text: string): Promise<void> {
  await page.fill(".composer textarea", text);
  await page.keyboard.press("Enter");
}

const idle = (page: Page) => page.locator(".session .head .chip:not(.state-running, .state-waiting)").waitFor();

/** Waits until a text is in a part of the page. */
const says = (page: Page, selector: string, text: string) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor({ state: "attached" });

const sessionOf = (page: Page) => new URL(page.url()).pathname.split("/")[2] as string;

async function eventsOf(session: string): Promise<CanonicalEvent[]> {
  return (await api<{ events: CanonicalEvent[] }>("GET", `/logs/session/${session}/events?limit=1000`)).events;
}

test("people sign in at their provider or with a key, come back to what they looked at, and sign out", async () => {
  const { page, errors } = await visit(on.browser, `${on.waggle.url}/sessions?q=hello`);
  const provider = page.locator('dialog.login button:has-text("Sign in at")');
  await provider.waitFor();
  expect(await faults(page)).toEqual([]);
  await page.check('dialog input[type="checkbox"]');
  await provider.click();
  await page.waitForFunction(() => location.pathname === "/sessions" && !document.querySelector("dialog.login"));
  expect(new URL(page.url()).search).toBe("?q=hello");
  expect(await page.evaluate(() => [sessionStorage["waggle.oidc"], sessionStorage["waggle.token"]?.slice(0, 2)])).toEqual([
    undefined,
    "ey",
  ]);
  await page.reload(); // the tab keeps the token
  await page.waitForSelector("main .sessions, main .face");
  expect(await page.locator("dialog.login").count()).toBe(0);
  expect(errors).toEqual([]);
  await page.click("nav .account");
  await page.click('.account-menu button:has-text("Sign out")');
  await page.waitForSelector("dialog.login[open]");

  await page.fill('dialog input[type="password"]', "wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog .fault");
  await page.fill('dialog input[type="password"]', key);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog.login", { state: "detached" });
  await page.waitForSelector(".composer textarea:enabled");
  const kept = await page.evaluate(() => [sessionStorage, localStorage, document.cookie].map((s) => JSON.stringify(s)).join(" "));
  expect(kept).not.toContain(key); // in memory only
  await page.goto(`${on.waggle.url}/login/callback?code=stolen&state=x`);
  await says(page, "dialog.login .fault", "it was not started in this tab");
  expect(page.url()).toBe(`${on.waggle.url}/`);
  expect(await faults(page)).toEqual([]);
  await page.close();
});

test("a chat asks before it writes, does what was approved or changed, and what others wrote stays text", async () => {
  const { page, errors } = await enter("/");
  const asked: string[] = [];
  page.on("request", (q) => asked.push(q.url()));
  page.on("dialog", (d) => {
    errors.push(`dialog ${d.message()}`);
    void d.dismiss();
  });
  await send(page, "write hostile.md <b>bold</b> \u202eabc");
  const question = page.locator(".question");
  await question.waitFor();
  const card = (await question.textContent()) ?? "";
  for (const part of ["workspace_write_file", "hostile.md", "hello"]) expect(card).toContain(part);
  const session = sessionOf(page);
  const requested = (await eventsOf(session)).find((e) => e.type === "input.requested");
  const { digest = "none" } = (requested?.data ?? {}) as { digest?: string };
  expect(await page.textContent(".question .digest")).toContain(digest.slice(0, 12));
  expect(await faults(page)).toEqual([]);
  const sent = page.waitForRequest((q) => q.method() === "POST" && q.url().endsWith("/answer"));
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press("y"); // by accident: it shows which question keys are for
  expect(await question.evaluate((e) => e === document.activeElement)).toBe(true);
  await page.keyboard.press("y"); // not held
  expect(await page.locator(".question [data-answer]:disabled").count()).toBe(0); // nothing was sent
  await page.keyboard.down("y");
  expect((await sent).postDataJSON()).toMatchObject({ decision: "approve", digest }); // of the call that was shown
  await page.keyboard.up("y");
  await question.waitFor({ state: "detached" });
  await page.waitForSelector(".item.answer .markdown a");
  expect(await page.textContent(".item.decision")).toMatch(/^Approved by ann, \d\d:\d\d:\d\dworkspace_write_file$/);
  await idle(page);
  expect(await readFile(join(on.waggle.option("--workspace"), "hostile.md"), "utf8")).toBe("hello\n");
  expect(await page.locator(".item.answer :is(img, script, b, iframe, object, svg)").count()).toBe(0);
  expect(await page.locator(".item.user b").count()).toBe(0);
  expect(await page.textContent(".item.user .said")).toContain("⟨U+202E⟩");
  expect(await page.locator('.markdown a[href^="javascript"]').count()).toBe(0);
  expect(await page.textContent(".markdown")).toContain("bank (evil.example)");
  expect(await page.textContent(".markdown")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  await send(page, "write hostile.md");
  await question.waitFor();
  await page.click(".question .edit button");
  await page.fill('.arguments [data-at="/content"] :is(input, textarea)', "changed");
  expect(await faults(page)).toEqual([]);
  await page.click('[data-answer="approve"]');
  await question.waitFor({ state: "detached" });
  await idle(page);
  expect(await readFile(join(on.waggle.option("--workspace"), "hostile.md"), "utf8")).toBe("changed");
  expect(await page.locator(".item.decision").last().textContent()).toMatch(/^Approved with changes by ann/);
  expect(asked.filter((u) => !u.startsWith(on.waggle.url))).toEqual([]);
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  expect(await violations(on.waggle)).toEqual({});
  await page.close();
});

test("a plan is changed and approved, its log shows any moment, and a reload shows the same", async () => {
  const { page, errors } = await enter("/");
  await page.click(".ideas li:nth-child(2) button");
  await page.waitForSelector(".question .editor li:nth-child(3)");
  expect(new URL(page.url()).pathname).toMatch(/^\/sessions\/.+/);
  expect(await page.textContent(".editor li:nth-child(1) .title")).toContain("⟨U+202E⟩");
  await page.click('.editor li:nth-child(2) button[aria-label="Drop step 2"]');
  await page.click(".editor li:nth-child(3) .title");
  await page.fill(".editor li:nth-child(3) input", "What is 6 * 7");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Alt+ArrowUp"); // and back, by keys and by dragging
  await says(page, ".editor li:nth-child(2):focus-within", "What is 6 * 7");
  await page.dragAndDrop(".editor li:nth-child(2) .grip", ".editor li:nth-child(3) .grip", { targetPosition: { x: 8, y: 24 } });
  await says(page, ".editor li:nth-child(3)", "What is 6 * 7");
  expect(await faults(page)).toEqual([]);
  expect(await page.textContent('[data-answer="approve"]')).toContain("Approve changed plan");
  await page.click('[data-answer="approve"]');
  await says(page, ".talk", "2 of 2 steps done");
  await idle(page);
  const plan = await page.textContent(".item.plan");
  expect(plan).toContain("What is 6 * 7");
  expect(plan).not.toContain("How many words are there");
  const before = await page.textContent(".talk");
  await page.reload();
  await says(page, ".talk", "2 of 2 steps done");
  expect(await page.textContent(".talk")).toBe(before);
  expect(await page.locator(".step[open]").count()).toBe(0); // what is done is folded
  await page.click(".item.plan li:nth-child(2) .node");
  await says(page, ".step[open]", "What is 6 * 7");
  expect(await page.locator(".step[open]").count()).toBe(1);
  await page.click("#tab-trace");
  await page.waitForSelector(".trace .bar");
  expect(await page.locator(".trace .kind-people").count()).toBe(1);
  await page.click(".trace .kind-step .name"); // what went in and what came out
  await says(page, ".trace .detail", "Ended with event");
  await page.focus(".trace .rows");
  await page.keyboard.press("+");
  await page.waitForSelector('.scale button:has-text("Show all")');
  await page.keyboard.press("0");
  await page.waitForSelector('.scale button:has-text("Show all")', { state: "detached" });
  expect(await faults(page)).toEqual([]);

  // As of the question the plan still has its three steps, and nobody acts there.
  const requested = (await eventsOf(sessionOf(page))).find((e) => e.type === "input.requested");
  await page.goto(`${on.waggle.url}${new URL(page.url()).pathname}?at=${requested?.sequence}`);
  await says(page, ".session.past .question .editor", "How many words are there");
  expect(await page.locator(".composer, [data-question]").count()).toBe(0);
  await page.focus('.scrubber input[type="range"]');
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((at) => location.search === `?at=${at}`, Number(requested?.sequence) - 1);
  await page.click('.scrubber button:has-text("1×")');
  await page.click('.scrubber button[title="Play the log"]'); // to its end, which is live
  await page.waitForFunction(() => location.search === "");
  await says(page, ".talk", "2 of 2 steps done");

  // The table: counts, a selection, an order.
  await page.goto(`${on.waggle.url}/sessions`);
  await page.waitForSelector(".states small");
  await page.waitForSelector(".sessions.table .line");
  await page.click(".sessions .line .pick");
  await says(page, ".several", "1 session");
  await page.click('.several button:has-text("Clear selection")');
  await page.click('.columns button:has-text("Duration")');
  await page.waitForSelector('.columns button[aria-pressed="true"]:has-text("Duration")');

  // What was refused is asked for once more.
  await page.goto(`${on.waggle.url}/`);
  await page.click(".ideas li:nth-child(2) button");
  await page.click('[data-answer="reject"]');
  await page.click('.session .head button:has-text("Try again")');
  await page.waitForSelector(".item.user >> nth=1");
  await page.click('[data-answer="reject"]');
  await page.waitForSelector(".question", { state: "detached" });

  // A step that has failed says why, and is tried again in a run of its own.
  await page.goto(`${on.waggle.url}/`);
  await page.click(".ideas li:nth-child(2) button");
  await page.click(".editor li:nth-child(3) .title");
  await page.fill(".editor li:nth-child(3) input", "Ask the broken model");
  await page.click('[data-answer="approve"]');
  await says(page, ".step.state-failed[open] .why", "rejected the request");
  await says(page, ".session .head .chip", "Partly done");
  expect(await faults(page)).toEqual([]);
  await page.click('.step button:has-text("Retry this step")');
  await page.waitForSelector(".steps >> nth=1 >> .step.state-completed");
  await says(page, ".session .head .chip", "Completed");
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.close();
});

test("a viewer sees without controls, a filter without a match says so, and a moment that cannot be is corrected", async () => {
  const ann = await enter("/");
  await send(ann.page, "hello");
  await ann.page.waitForSelector(".item.answer");
  await idle(ann.page);
  const path = `/sessions/${sessionOf(ann.page)}`;
  await ann.page.close();

  const { page, errors } = await enter(path, "key-of-vera");
  await says(page, ".view-only", "Ask for the user role");
  expect(await page.locator(".view-only").count()).toBe(1);
  expect(await page.locator(".composer").count()).toBe(0);
  await page.click("#tab-log");
  await page.fill(".log input[type=search], .log [data-search]", "type:nothing.");
  await says(page, ".log .face", "No event matches this filter");
  await page.click(".log .face button");
  await page.waitForSelector(".log .row, .log [role=row]");
  for (const at of ["99999", "-5", "abc"]) {
    await page.goto(`${on.waggle.url}${path}?at=${at}`);
    await page.waitForSelector(".item.answer");
    await page.waitForFunction(() => location.search === "");
  }
  await page.goto(`${on.waggle.url}/`);
  await says(page, ".view-only", "View only");
  expect(await page.locator(".ideas, .composer").count()).toBe(0);
  expect(await faults(page)).toEqual([]);
  await page.click(".samples a >> text=Every protocol");
  await says(page, ".log .detail", "waggle.question"); // as AG-UI calls it
  await page.goto(`${on.waggle.url}/`);
  await page.click(".samples a >> text=One inbox");
  await says(page, ".question", "It was open at this moment");
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.close();
});

test("an answer in Markdown keeps its signs, and a phone has everything behind More", async () => {
  const { page, errors } = await enter("/");
  await page.setViewportSize({ width: 380, height: 800 });
  await send(page, "answer in Markdown");
  await page.waitForSelector(".markdown .box.checked");
  await idle(page);
  const shown = await page.evaluate(() => {
    const all = (what: string) => [...document.querySelectorAll<HTMLElement>(`.markdown ${what}`)];
    return {
      text: all("p")[0]?.textContent,
      names: all("p").at(-1)?.textContent,
      marked: all(":is(p > code, em)").map((e) => e.textContent),
      links: all("a").map((a) => a.getAttribute("href")),
      headings: all(":is(h1, h2, h3, h4, h5, h6)").map((h) => `${h.tagName} ${h.className}`),
      cells: all(":is(th, td)").map((c) => `${c.tagName} ${c.className} ${c.textContent?.trim()}`),
      code: all(".fence").map((f) => [f.querySelector("span")?.textContent, f.querySelector("code")?.textContent]),
      colours: all("pre span").map((s) => `${s.className} ${s.textContent}`),
      boxes: all(".box").map((b) => b.ariaLabel),
      list: all("> ol").map((o) =>
        [o.getAttribute("start"), ...all("> ol *").flatMap((e) => (/^(LI|UL|P|PRE)$/.test(e.tagName) ? [e.tagName] : []))].join(" "),
      ),
      later: all("> ol > li > p").at(-1)?.textContent,
    };
  });
  expect(shown).toEqual({
    text: "It costs $5, or $x = 2$, as a[0] says, with an open [bracket",
    names: "max_size_mb: the max_size_mb of task_0001 is small, see the_page (a.example) and https://a.example/x_y_z",
    marked: ["max_size_mb", "small"],
    links: ["https://a.example/b_c_d", "https://a.example/x_y_z"],
    headings: ["H3 h1", "H4 h3"],
    cells: ["TH start Name", "TH end Price", "TD start tea", "TD end 3.50"],
    code: [
      ["python", "print(1)"],
      ["Code", "npm ci"],
    ],
    colours: ["name print", "number 1"],
    boxes: ["To do", "Done"],
    list: ["3 LI P PRE LI P UL LI P P"],
    later: "or 5*3 later",
  });
  expect(await faults(page)).toEqual([]);

  await page.click(".head [popovertarget]");
  await page.waitForSelector(".menu:popover-open");
  expect(await page.locator(".menu button").allTextContents()).toEqual([
    "Fork from here",
    "Compare",
    "Close",
    "Delete",
    "Copy link",
    "Export log",
  ]);
  await page.keyboard.press("Escape");
  await page.click("nav .more button");
  await page.waitForSelector("dialog.more-sheet[open]");
  expect(await faults(page)).toEqual([]);
  await page.click('.more-sheet button:has-text("Swarm")');
  await page.waitForFunction(() => document.activeElement?.tagName === "H1" && document.activeElement.textContent === "Swarm");
  await page.setViewportSize({ width: 1300, height: 850 });
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.waitForFunction(() => document.activeElement?.textContent === "Sessions");
  await page.waitForSelector(".rows .row");
  await page.keyboard.press("j");
  await page.waitForSelector(".rows .row.picked");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session .item");
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog.palette[open]");
  await page.keyboard.type("2");
  await says(page, '[role="option"][aria-selected="true"]', "Show as of event 2");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.search.endsWith("at=2"));
  expect(errors).toEqual([]);
  await page.close();
});

const newsroom = {
  name: "newsroom",
  coordinator: "Lead",
  members: [
    { name: "Lead", role: "gives the work to others" },
    { name: "Writer", role: "writes files", tools: ["workspace/*"] },
    {
      name: "desk",
      role: "checks what was written",
      team: { name: "desk", coordinator: "Editor", members: [{ name: "Editor", role: "leads the desk" }, { name: "Reader" }] },
    },
  ],
};

test("a nested team: who waits for whom, its messages, its board, its question, and the moment before the answer", async () => {
  const { team_id: id } = await api<TeamView>("POST", "/teams", newsroom);
  const { page, errors } = await enter(`/teams/${id}`);
  await says(page, ".member", "Reader");
  expect(await page.locator('[role="treeitem"]').count()).toBe(6);
  const requests: string[] = [];
  page.on("request", (q) => requests.push(q.url()));
  await send(page, "publish hello");

  // Writer waits for people; the desk has a task that comes after Writer's.
  await says(page, '[role="treeitem"]:has-text("Writer")', "Waits for people: workspace_write_file");
  await says(page, '[role="treeitem"]:has-text("desk")', "Waits for Writer (task_0001)");
  await page.click('[role="treeitem"]:has-text("desk") .waits a');
  await page.waitForFunction(() => location.search === "?member=Writer");
  await page.waitForSelector(".team .question");
  await page.click("#tab-messages");
  await says(page, ".sequence .row .only-read", "Lead to desk: get ready to check hello.md");
  expect((await page.locator(".sequence .row .only-read").allTextContents())[0]).toBe("People to Lead: publish hello");
  expect(await faults(page)).toEqual([]);
  await page.click("#tab-board");
  await says(page, ".board .column:nth-child(1) .card", "check");
  expect(await page.textContent(".board .column:nth-child(1) .needs")).toContain("task_0001");
  expect(requests.filter((u) => u.includes(`/logs/team/${id}/`) || u.includes("/logs/member/"))).toEqual([]); // one reading for all views
  await page.click("#tab-tree");
  const waits = await page.evaluate(() => document.querySelector<HTMLInputElement>(".scrubber input")?.value);
  await page.click('.team [data-answer="approve"]');
  await says(page, ".team .item.answer", "The file is written.");
  await page.waitForFunction(() => ![...document.querySelectorAll('[role="treeitem"]')].some((e) => e.textContent?.includes("people:")));
  await page.goto(`${on.waggle.url}/teams/${id}?at=${waits}`);
  await page.waitForSelector(".session.past .member");
  await says(page, '[role="treeitem"]:has-text("Writer")', "Waits for people: workspace_write_file");
  expect(await page.locator(".composer, .team .question").count()).toBe(0);
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.close();
});

test("the inbox answers an agent that asks; a dead letter is sent again and discarded, and that is in the audit log", async () => {
  const painter = await defineAgent({
    name: "Painter",
    run: async (task) => `painted ${await task.ask("Which colour?", { options: ["red", "green"], timeoutMs: 600_000 })}`,
  }).serve({ url: on.waggle.url, token: key });
  const client = new WaggleClient({ url: on.waggle.url, token: key });
  const { page, errors } = await enter("/questions");
  await page.waitForSelector(".connection.up");
  const { session_id } = await api<{ session_id: string }>("POST", "/sessions", {});
  await api("POST", `/sessions/${session_id}/messages`, { content: "Paint my house, please.", agent: "Painter" });
  await says(page, ".cards .question", "Which colour?");
  expect(await page.locator(".cards .question").count()).toBe(1);
  await page.waitForFunction(() => document.title === "(1) Questions · Waggle");
  const options = await page.$$eval(".question datalist option", (all) => all.map((o) => (o as HTMLOptionElement).value));
  expect(options).toEqual(["red", "green"]);
  expect(await faults(page)).toEqual([]);
  await page.route("**/answer", async (sent) => {
    await api("POST", new URL(sent.request().url()).pathname.replace("/api/v1", ""), { decision: "answer", message: "green" }); // the first one counts
    await sent.continue();
  });
  await page.fill(".question input", "red");
  await page.click('.question [data-answer="approve"]');
  await says(page, ".cards .result", "ann answered this ");
  await page
    .locator(".result")
    .filter({ hasText: /^ann answered this \d+\.\d s before you$/ })
    .waitFor();
  expect(await faults(page)).toEqual([]);
  await says(page, "main", "Nothing waits for you");
  for await (const e of client.session(session_id).events())
    if (e.type === "run.completed") {
      expect(e.data.content).toBe("painted green");
      break;
    }
  client.close();
  await painter.stop();
  await several(page);

  const messages = ["one", "two", "none"].map((id) => {
    const of = { service: "worker", verb: "do_job", tenant: "default", key: `key-${id}` };
    const body = id === "none" ? "no command" : JSON.stringify({ id, ...of, time: new Date().toISOString(), data: "no order" });
    return { subject: commandSubject(of.service, of.tenant, of.key, of.verb), body };
  });
  await publish(join(on.waggle.dir, "data"), messages);
  await expect
    .poll(async () => (await api<{ dead_letters: [] }>("GET", "/dead-letters")).dead_letters.length, { timeout: maxWait })
    .toBe(3);
  await page.goto(`${on.waggle.url}/installation`); // what is wrong stands first, then four charts
  await says(page, ".wrong li", "dead letters");
  await page
    .locator(".chart output")
    .filter({ hasText: /^\d+ runs ended$/ })
    .waitFor();
  expect(await page.locator('.chart svg[role="img"]').count()).toBe(4);
  await page.selectOption(".chart select", "tools");
  await page
    .locator(".chart output")
    .filter({ hasText: /^p50 [\d.]+ ms · p99/ })
    .waitFor();
  await page.click(".numbers summary");
  expect(await page.locator(".minutes tbody tr").count()).toBe(15);
  expect(await faults(page)).toEqual([]);
  await page.goto(`${on.waggle.url}/installation/dead`);
  const letter = (id: string) => page.locator(`.letters > li:has(.id[title="key-${id}"])`);
  await letter("two").waitFor();
  expect(await page.textContent("#tab-dead .badge")).toBe("3");
  expect(await letter("none").locator('button:text-is("Send again")').isDisabled()).toBe(true);
  await letter("one").locator("summary").click();
  await letter("one").locator("pre", { hasText: "no order" }).waitFor();
  expect(await faults(page)).toEqual([]);

  // The cause is not mended: the command is given up once more, as another dead letter.
  const before = await letter("one").locator("time").getAttribute("datetime");
  await letter("one").locator('button:text-is("Send again")').click();
  await page.waitForFunction((time) => {
    const again = document.querySelector('.letters > li:has(.id[title="key-one"]) time');
    return again !== null && again.getAttribute("datetime") !== time;
  }, before);
  await letter("two").locator('button:text-is("Discard")').click();
  await page.waitForSelector("dialog.confirm[open]");
  await page.keyboard.type("do_jo");
  expect(await page.isDisabled("dialog button.danger")).toBe(true);
  await page.keyboard.type("b");
  await page.keyboard.press("Enter");
  await letter("two").waitFor({ state: "detached" });
  let release = () => {};
  const typed = new Promise<void>((go) => {
    release = go;
  });
  await page.route("**/assets/palette-*.js", async (r) => {
    await typed;
    await r.continue();
  });
  await page.goto(`${on.waggle.url}/installation/audit?action=api-call`);
  await page.waitForSelector("table.audit tbody tr");
  const rows = (await page.locator("table.audit td.value").allTextContents()).join("\n");
  expect(rows).toMatch(/POST \/api\/v1\/dead-letters\/\d+\/resend/);
  expect(rows).toMatch(/DELETE \/api\/v1\/dead-letters\/\d+/);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("density"); // before the palette has been loaded
  release();
  await page.locator('.choices [role="option"]').first().filter({ hasText: "Density" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForSelector(':root[data-density="dense"]');
  await page.goto(`${on.waggle.url}/installation/versions?role=worker`);
  await says(page, "table.versions tbody tr", "Answers");
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.close();
});

/** Answers two calls at once, after a look at both; one of them was put off before. */
async function several(page: Page): Promise<void> {
  await page.unroute("**/answer");
  const sessions = await Promise.all(
    ["one", "two"].map(async (n) => {
      const { session_id } = await api<{ session_id: string }>("POST", "/sessions", {});
      await api("POST", `/sessions/${session_id}/messages`, { content: `write hello.md, ${n}` });
      return session_id;
    }),
  );
  const cards = page.locator(".kind:has(#kind-tool) [data-question]");
  await cards.nth(1).waitFor();
  await cards.first().locator(".snooze").click();
  await page.click('.menu:popover-open button:has-text("1 hour")');
  await says(page, ".sleeping summary", "Snoozed (1)");
  await page.waitForFunction(() => document.title === "(1) Questions · Waggle");
  await page.reload(); // the browser has kept it
  await page.click(".sleeping summary");
  await page.click('.sleeping button:has-text("Bring back")');
  await cards.nth(1).focus();
  await page.keyboard.press("x");
  await says(page, ".together", "1 selected");
  await page.check(".kind:has(#kind-tool) > header input");
  expect(await faults(page)).toEqual([]);
  await page.click(".together .primary");
  await page.waitForSelector("dialog.sure li:nth-child(2)");
  const answers: unknown[] = [];
  page.on("request", (q) => q.url().endsWith("/answer") && answers.push(q.postDataJSON()));
  await page.click("dialog.sure .primary");
  await page.locator(".result").filter({ hasText: "Approved. Your answer counts." }).nth(1).waitFor();
  const asked = (await Promise.all(sessions.map(eventsOf))).flat().flatMap((e) => (e.type === "input.requested" ? [e.data.digest] : []));
  expect(new Set(answers.map((a) => (a as { digest: string }).digest))).toEqual(new Set(asked)); // each for what it shows
}

// The last one: the index of questions follows the logs later than usual after a kill.
test("a server that is killed while an answer is written costs nothing that is shown or sent", async () => {
  const { page, errors } = await enter("/");
  await send(page, "say one");
  await page.waitForSelector(".item.answer");
  await idle(page);
  const first = await page.evaluateHandle(() => document.querySelector(".item.answer"));
  const removed = await removals(page, ".talk", ".item.user");
  expect(await violations(on.waggle)).toEqual({}); // before its counters are gone
  await send(page, "say it slowly");
  await says(page, ".item.answer", "word3 ");
  await on.waggle.kill();
  await send(page, "say two");
  await says(page, ".composer", "Sends when the connection is back");
  await on.waggle.restart();
  await page.waitForFunction(() => document.querySelectorAll(".item.answer").length === 3);
  await says(page, ".item.answer", "say two");
  await idle(page);
  const texts = (await page.locator(".item.answer .markdown").allTextContents()).map((x) => x.trim());
  expect(texts).toEqual([expect.stringContaining("say one"), words, expect.stringContaining("say two")]);
  expect(await page.locator(".item.user .said").allTextContents()).toEqual(["say one", "say it slowly", "say two"]);
  expect(await first.evaluate((e) => e?.isConnected)).toBe(true);
  expect(await removed()).toBe(0);
  const log = await eventsOf(sessionOf(page));
  expect(log.map((e) => e.sequence)).toEqual(log.map((_, i) => i + 1));
  const count = (type: string) => log.filter((e) => e.type === type).length;
  expect([count("message.received"), count("run.completed")]).toEqual([3, 3]);
  expect(errors).toEqual([]);
  await page.close();
});
