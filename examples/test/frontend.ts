import { join } from "node:path";
import { WaggleClient } from "@waggle-dev/client";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { maxWait } from "../../sdk/typescript/testing/server.js";

// What the front ends of others are put through: the same plan, the same model, the same page of questions.

const pictures = process.env["WAGGLE_TS_PICTURES"];

const plan = {
  summary: "the notes, and what follows",
  reasoning: "r",
  tasks: [
    { id: "notes", title: "Read the notes", description: "fetch the file", dependencies: [], priority: 0, capability: "" },
    { id: "next", title: "Say what follows", description: "draw conclusions", dependencies: ["notes"], priority: 0, capability: "" },
  ],
};
/** Two tasks that are carried out side by side, and ask side by side. */
const parallel = { ...plan, tasks: plan.tasks.map((t) => ({ ...t, description: "fetch the file", dependencies: [] })) };
/** Two tasks that speak at the same time. */
const duet = {
  ...plan,
  tasks: ["left", "right"].map((id) => ({ ...plan.tasks[0], id, title: `Speak ${id}`, description: `speak as ${id}` })),
};
/** One task, whose answer takes longer than any test. */
const long = { ...plan, tasks: [{ ...plan.tasks[0], id: "long", title: "Speak", description: "speak as long" }] };
const endless = Array.from({ length: 5000 }, (_, i) => `more${i} `).join("");
const words = (name: string) => Array.from({ length: 30 }, (_, i) => `${name}${i} `).join("");

/** Plans, reads a file in the first task, and speaks slowly. */
export function script(messages: { role: string; content: unknown }[], planning: boolean) {
  const said = JSON.stringify(messages.filter((m) => m.role === "user").at(-1)?.content ?? "");
  if (said.includes("give up")) return { status: 500 };
  if (planning && said.includes("side by side")) return { text: JSON.stringify(parallel) };
  if (planning && said.includes("without end")) return { text: JSON.stringify(long) };
  if (planning && said.includes("at once")) return { text: JSON.stringify(duet) };
  if (planning) return { text: JSON.stringify(plan) };
  if (said.includes("left29")) return { text: words("both"), pauseMs: 10 };
  if (said.includes("speak as long")) return { text: endless, pauseMs: 40 };
  for (const side of ["left", "right"]) if (said.includes(`speak as ${side}`)) return { text: words(side), pauseMs: 40 };
  if (said.includes("next29")) return { text: words("sum"), pauseMs: 40 };
  if (said.includes("draw conclusions")) return { text: words("next"), pauseMs: 40 };
  if (messages.at(-1)?.role === "tool" || said.includes("buy milk")) return { text: "buy milk" };
  return { calls: [{ name: "workspace_read_file", args: { path: "notes.md" } }] };
}

export async function picture(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

// biome-ignore lint/performance/useDomNodeTextContent: what people see
const shown = (page: Page) => page.evaluate(() => document.body.innerText);
const times = (text: string, piece: string) => text.split(piece).length - 1;

/** Waits until the page shows a text. */
async function sees(page: Page, text: string): Promise<void> {
  // biome-ignore lint/performance/useDomNodeTextContent: what people see
  await page.waitForFunction((t) => document.body.innerText.includes(t), text, { timeout: maxWait });
}

/** Shows what is wrong when a test fails. */
export async function showing(page: Page, name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await picture(page, `${name}-failed`);
    console.log(await shown(page));
    throw error;
  }
}

/** Two steps side by side whose calls are asked about together: each question has an answer of its own. */
export async function askedTogether(page: Page, input: string, send: string): Promise<void> {
  await page.fill(input, "read the notes twice, side by side");
  await page.click(send);
  await page.waitForSelector(".question", { timeout: maxWait });
  await page.click(".question button.main");
  await page.waitForFunction(() => document.querySelectorAll(".question").length === 2, undefined, { timeout: maxWait });
  await page.locator(".question button.main").nth(1).click();
  await page.locator(".question[data-given=false] button.main").click();
  await page.waitForFunction(() => document.querySelectorAll(".plan li[data-status=completed]").length === 2, undefined, {
    timeout: maxWait,
  });
}

/** Two calls side by side, one approved with other arguments and one refused. Arguments that do not fit are asked about again. */
export async function edited(page: Page, name: string, input: string, send: string): Promise<void> {
  await page.fill(input, "read the notes twice, side by side");
  await page.click(send);
  await page.waitForSelector(".question", { timeout: maxWait });
  await page.click(".question button.main");
  const edit = async (args: string, open: number) => {
    const asked = (n: number) => document.querySelectorAll(".question[data-given=false]").length === n;
    await page.waitForFunction(asked, open, { timeout: maxWait });
    if ((await page.locator(".question textarea").count()) === 0) await page.locator(".question >> text=Edit").first().click();
    await page.fill(".question textarea", args);
    await picture(page, `${name}-edit-${open}`);
    await page
      .locator(".question", { has: page.locator("textarea") })
      .locator("button.main")
      .click();
  };
  const refuses = async (args: string) => {
    await page.waitForSelector(".question [role=alert]", { timeout: maxWait });
    expect(await page.textContent(".question [role=alert]")).toContain("/path");
    expect(await page.inputValue(".question textarea")).toContain(args);
    expect(await page.locator(".question").count()).toBe(1);
    await picture(page, `${name}-refused-${args}`);
  };
  await edit('{ "path": 7 }', 2);
  await page.locator(".question[data-given=false] >> text=No").click();
  await refuses("7"); // the other answer counts
  await edit('{ "path": 8 }', 1);
  await refuses("8"); // the request was refused
  await edit('{ "path": "./notes.md" }', 1);
  await page.waitForFunction(() => document.querySelectorAll(".plan li[data-status=completed]").length === 2, undefined, {
    timeout: maxWait,
  });
  await sees(page, "./notes.md");
  expect(await page.locator(".question").count()).toBe(0);
  await picture(page, `${name}-edited`);
}

/** A run that is stopped in the middle of its answer: what was said stays, also on a page that is opened anew. */
export async function stopped(page: Page, name: string, input: string, send: string, stop: string): Promise<void> {
  await page.fill(input, "speak without end");
  await page.click(send);
  await page.waitForSelector(".question", { timeout: maxWait });
  await page.click(".question button.main");
  await sees(page, "more9 ");
  await page.click(stop);
  await page.waitForSelector(".plan li[data-status=cancelled]", { timeout: maxWait });
  await picture(page, `${name}-stopped`);
  for (const again of [false, true]) {
    if (again) await page.reload();
    await sees(page, "more9 ");
    await page.waitForSelector(".plan li[data-status=cancelled]", { timeout: maxWait });
    expect(times(await shown(page), "more9 ")).toBe(1);
  }
  await picture(page, `${name}-stopped-reloaded`);
}

/** A run that fails: the page says what is tried again, and in the end why nothing came, also on a page that is opened anew. */
export async function failed(page: Page, input: string, send: string): Promise<void> {
  await page.fill(input, "give up");
  await page.click(send);
  await sees(page, "Asking again.");
  await page.waitForFunction(() => /^(?!.*Asking again\.).+/s.test(document.querySelector(".problem")?.textContent ?? ""), undefined, {
    timeout: maxWait,
  });
  const problem = await page.textContent(".problem");
  await page.reload();
  await page.waitForFunction((text) => document.querySelector(".problem")?.textContent === text, problem, { timeout: maxWait });
}

/** Two windows of one thread: each shows what is said, asked, answered and done in the other. */
export async function twoWindows(one: Page, two: Page, input: string, send: string): Promise<void> {
  await one.fill(input, "speak at once");
  await one.click(send);
  await one.waitForSelector(".question", { timeout: maxWait });
  await two.goto(one.url());
  await two.waitForSelector(".question", { timeout: maxWait });
  await one.click(".question button.main");
  for (const page of [two, one]) await sees(page, words("both").trim());
  expect(await two.locator(".question").count()).toBe(0);
  await two.fill(input, "what do the notes say, and what follows?");
  await two.click(send);
  await one.waitForSelector(".question", { timeout: maxWait });
  await one.click(".question button.main");
  for (const page of [one, two]) await sees(page, "workspace_read_file");
}

/** Two steps that speak at the same time: each of their texts is whole, while they speak and on a page that comes back in the middle. */
export async function spokenTogether(page: Page, input: string, send: string): Promise<void> {
  const whole = async () => {
    await sees(page, words("both").trim());
    const text = await shown(page);
    expect(["left", "right", "both"].map((side) => times(text, words(side).trim()))).toEqual([1, 1, 1]);
  };
  for (const reload of [false, true]) {
    await page.fill(input, "speak at once");
    await page.click(send);
    await page.waitForSelector(".question", { timeout: maxWait });
    await page.click(".question button.main");
    await sees(page, "left3 ");
    if (reload) await page.reload();
    await whole();
    await page.goto(page.url().replace(/&?thread=[^&]*/, ""));
    await page.waitForSelector(input);
  }
}

/** A planned run with an approval, reloads in the middle, and a server that is killed then. */
export async function carriedOut(page: Page, name: string, input: string, send: string, killed: () => Promise<void>): Promise<void> {
  await page.fill(input, "what do the notes say, and what follows?");
  await page.click(send);
  await sees(page, "2. Say what follows");
  await picture(page, `${name}-plan`);
  await page.click(".question button.main");
  await sees(page, "workspace_read_file");
  await page.waitForSelector(".question", { timeout: maxWait });
  await page.reload();
  await page.waitForSelector(".question", { timeout: maxWait });
  await picture(page, `${name}-tool`);
  await page.click(".question button.main");
  await sees(page, "next3 ");
  await page.reload();
  await sees(page, "next9 ");
  await picture(page, `${name}-running`);
  await sees(page, "sum3 ");
  await killed();
  await sees(page, words("sum").trim());
  await page.waitForFunction(() => document.querySelectorAll(".plan li[data-status=completed]").length === 2, undefined, {
    timeout: maxWait,
  });
  await picture(page, `${name}-done`);
}

/** Nothing is lost or doubled: on the page, on a page that is opened anew, and in the log. */
export async function complete(page: Page, url: string): Promise<void> {
  const thread = new URL(page.url()).searchParams.get("thread") as string;
  for (const again of [false, true]) {
    if (again) await page.reload();
    await sees(page, words("sum").trim());
    const text = await shown(page);
    expect(times(text, "what do the notes say, and what follows?")).toBe(1);
    expect(times(text, words("next").trim())).toBe(1);
    expect(times(text, words("sum").trim())).toBe(1);
    expect(times(text, "sum3 ")).toBe(1);
    expect(times(text, "workspace_read_file")).toBe(1);
    expect(await page.locator(".question").count()).toBe(0);
  }
  const client = new WaggleClient({ url });
  const types: string[] = [];
  for await (const e of client.session(thread).events()) {
    types.push(e.type);
    if (/^run\.(completed|failed|cancelled)$/.test(e.type)) break;
  }
  client.close();
  const of = (type: string) => types.filter((t) => t === type).length;
  expect([of("message.received"), of("tool.called"), of("tool.completed"), of("run.completed")]).toEqual([1, 1, 1, 1]);
}
