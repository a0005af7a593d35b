import type { TeamView } from "@waggle-dev/client";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { Model, type Reply, up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { faults, visit } from "./page.ts";

// The room of a team, in Chromium, with teams of the real binary. The model is scripted, so that members ask, wait and hand on.

let browser: Browser;
let waggle: Waggle;
let model: Model;

/** Lead puts two tasks on the board, of which the second needs the first, and asks the nested team; Writer writes a file. */
function script(messages: { role: string; content: unknown }[]): Reply {
  const last = messages.at(-1);
  const asked = String(messages.findLast((m) => m.role === "user")?.content ?? "");
  if (last?.role === "tool") return { text: asked.includes("publish") ? "Everybody has their work." : "The file is written." };
  if (asked.includes("publish hello")) {
    const tasks = [
      { task_name: "write", assignee_name: "Writer", description: "write hello.md" },
      { task_name: "check", assignee_name: "desk", description: "check hello.md", dependencies: ["write"] },
    ];
    return {
      calls: [
        { name: "create_tasks", args: { tasks } },
        { name: "send_message_to", args: { recipient_name: "desk", content: "get ready to check hello.md" } },
      ],
    };
  }
  if (asked.includes("write hello.md"))
    return { calls: [{ name: "workspace_write_file", args: { path: "hello.md", content: "hello\n" } }] };
  return { text: `I have read it: ${asked.slice(-40)}` };
}

const definition = {
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

beforeAll(async () => {
  model = await Model.start(script);
  const unlimited = { WAGGLE_QUOTA_TENANT_TEAMS: "-1", WAGGLE_QUOTA_PRINCIPAL_TEAMS: "-1" };
  [browser, waggle] = await Promise.all([launch(), up("", { ...model.env, ...unlimited })]);
});
afterAll(async () => {
  await browser?.close();
  await waggle?.end();
  model?.end();
});

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${waggle.url}/api/v1${path}`, {
    method,
    ...(body ? { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

const start = async (d: object): Promise<string> => (await api<TeamView>("POST", "/teams", d)).team_id;

/** Waits until a text is in a part of the page. */
const says = (page: Page, selector: string, text: string) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor({ state: "attached" });

test("a team: its members, a tool that asks, and what came of it", async () => {
  const { page, errors } = await visit(browser, `${waggle.url}/teams`);
  await page.click(".actions button");
  await page.waitForFunction(() => document.querySelectorAll(".team .member").length === 3);
  await page.selectOption(".composer select", "Writer");
  await page.fill(".composer textarea", "please write hello.md");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".team .question");
  expect(await page.textContent(".team .question")).toContain("workspace_write_file");
  await page.click('.team [data-answer="approve"]');
  await page.waitForFunction(() => !document.querySelector(".team .question"));
  await says(page, ".team .item.answer", "The file is written.");
  await page.click("#tab-log");
  await page.waitForSelector(".log .row");
  expect(errors).toEqual([]);
  await page.close();
});

test("the tree is a tree for keys: its teams open and shut, Enter shows a conversation", async () => {
  const id = await start(definition);
  const { page, errors } = await visit(browser, `${waggle.url}/teams/${id}`);
  await says(page, ".member", "Reader");
  await page.focus('[role="tree"]');
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft"); // to its team
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.querySelectorAll('[role="treeitem"]').length === 4);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelectorAll('[role="treeitem"]').length === 6);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.search.includes("member=desk%2FEditor"));
  await says(page, ".team .face", "Editor has done nothing so far.");
  await page.keyboard.press("]");
  await page.waitForFunction(() => location.search.includes("view=messages"));
  await page.keyboard.press("[");
  await page.waitForFunction(() => !location.search.includes("view="));
  expect(errors).toEqual([]);
  await page.close();
});

test("a message that is dropped is a broken arrow; a team is paused, resumed and closed by its name", async () => {
  const id = await start(definition);
  const { page, errors } = await visit(browser, `${waggle.url}/teams/${id}`);
  await page.click('.head button:has-text("Pause")');
  await page.waitForSelector('.head button:has-text("Resume")');
  await page.selectOption(".composer select", "Writer");
  await page.fill(".composer textarea", "write hello.md");
  await page.keyboard.press("Enter");
  await says(page, ".item.message", "write hello.md");
  await page.click('.head button:has-text("Stop")');
  await page.click("#tab-messages");
  await page.waitForSelector(".sequence .arrow.dropped");
  expect(await page.textContent(".sequence .row .only-read")).toBe("People to Writer: write hello.md (Dropped: stopped)");
  await page.click('.head button:has-text("Close")');
  await page.fill("dialog input", "other");
  expect(await page.locator("dialog button.danger").isDisabled()).toBe(true);
  await page.fill("dialog input", "newsroom");
  expect(await faults(page)).toEqual([]);
  await page.click("dialog button.danger");
  await says(page, ".head .chip", "Closed");
  await page.waitForFunction(() => ![...document.querySelectorAll(".head button")].some((b) => b.textContent === "Close"));
  expect(errors).toEqual([]);
  await page.close();
});

test("a large team has the elements of what is in view, wide and narrow", async () => {
  const members = Array.from({ length: 5 }, (_, t) => ({
    name: `team${t}`,
    team: { name: `team${t}`, coordinator: "m0", members: Array.from({ length: 9 }, (_, i) => ({ name: `m${i}` })) },
  }));
  const id = await start({ name: "large", coordinator: "Lead", members: [{ name: "Lead" }, ...members] });
  await api("POST", `/teams/${id}/pause`);
  const messages = 160;
  for (let i = 0; i < messages; i += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, k) =>
        api("POST", `/teams/${id}/messages`, { content: `message ${i + k}`, target: `team${(i + k) % 5}/m${(i + k) % 9}` }),
      ),
    );
  for (const size of [
    { width: 1300, height: 850 },
    { width: 380, height: 760 },
  ]) {
    const { page, errors } = await visit(browser, `${waggle.url}/teams/${id}?view=messages`, size);
    await page.waitForFunction((n) => Number(document.querySelector<HTMLInputElement>(".scrubber input")?.max) > n, messages);
    await page.waitForSelector(".sequence .arrow");
    const elements = () => page.evaluate(() => document.querySelectorAll("*").length);
    expect(await elements()).toBeLessThanOrEqual(1500);
    await page.evaluate(() => document.querySelector(".sequence .rows")?.scrollTo(0, 0));
    await says(page, ".sequence .row .only-read", "message 0");
    await page.evaluate(() => document.querySelector(".sequence .rows")?.scrollTo(5000, 1e6));
    await page.waitForSelector(".sequence .arrow");
    expect(await elements()).toBeLessThanOrEqual(1500);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await page.click("#tab-tree");
    await page.waitForSelector(".member");
    expect(await elements()).toBeLessThanOrEqual(1500);
    expect(await faults(page)).toEqual([]);
    expect(errors).toEqual([]);
    await page.close();
  }
});

test("who waits for whom is drawn, with a sentence for each arrow, as of the shown event, and not once nobody waits", async () => {
  const id = await start({ ...definition, name: "waiting" });
  await api("POST", `/teams/${id}/messages`, { id: "m1", content: "please publish hello" });
  const { page, errors } = await visit(browser, `${waggle.url}/teams/${id}`, { width: 1440, height: 900 });
  await says(page, ".waiting-for li", "Writer waits for you: workspace_write_file");
  await says(page, ".waiting-for li", "desk waits for Writer: write");
  expect((await page.locator(".waiting-for .waiter b").allTextContents()).sort()).toEqual(["Writer", "You", "desk"]);
  expect(await page.locator(".waiting-for path.edge").count()).toBe(2);
  expect(await faults(page)).toEqual([]);

  // A node and a sentence lead to the member that asks, by keys alone.
  await page.focus('.waiter:has-text("Writer")');
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.search === "?member=Writer");
  await page.focus('.waiting-for .plain:has-text("desk")');
  expect(await page.locator(".edge.lit").count()).toBe(1);

  // Before the tasks were there nobody waited.
  await page.focus('.scrubber input[type="range"]');
  await page.keyboard.press("PageUp");
  await page.waitForSelector(".session.past");
  await page.waitForFunction(() => !document.querySelector(".waiting-for"));
  await page.click(".frame button");
  await says(page, ".waiting-for li", "Writer waits for you: workspace_write_file");

  await page.click('.team [data-answer="approve"]');
  await page.waitForFunction(() => !document.querySelector(".waiting-for")?.textContent?.includes("waits for you"));
  for (const size of [
    { width: 380, height: 780 },
    { width: 1440, height: 900 },
  ])
    for (const colorScheme of ["light", "dark"] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      expect(await faults(page), `${size.width} ${colorScheme}`).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    }
  await api("DELETE", `/teams/${id}`);
  await page.waitForFunction(() => !document.querySelector(".waiting-for"));
  expect(errors).toEqual([]);
  await page.close();
});
