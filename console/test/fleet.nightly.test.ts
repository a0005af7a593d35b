import { WaggleClient } from "@waggle-dev/client";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { Line, Model, maxWait, up, Waggle } from "../../sdk/typescript/testing/server.ts";
import { faults, removals, visit } from "./page.ts";

// Two gateways behind one address, as a fleet has them. The pages are open in every room while one gateway is killed.

let browser: Browser;
let model: Model;
let services: Waggle;
let gateways: Waggle[];
let fleet: Line;

const words = Array.from({ length: 120 }, (_, i) => `word${i}`).join(" ");

beforeAll(async () => {
  model = await Model.start((messages) => {
    const asked = String(messages.findLast((m) => m.role === "user")?.content ?? "");
    if (!asked.includes("hello.md")) return { text: words, pauseMs: 50 };
    if (messages.at(-1)?.role === "tool") return { text: "The file is written." };
    return { calls: [{ name: "workspace_write_file", args: { path: "hello.md", content: "hello\n" } }] };
  });
  [browser, services] = await Promise.all([launch(), up("tools:\n  builtin_approval: writes\n", model.env)]);
  const args = ["serve", "--role", "gateway", "--nats", `nats://${services.option("--nats-addr")}`, "--data", services.option("--data")];
  gateways = await Promise.all([Waggle.start([...args, "--telemetry-addr", "off"]), Waggle.start([...args, "--telemetry-addr", "off"])]);
  fleet = await Line.to(...gateways.map((g) => g.url));
});
afterAll(async () => {
  await browser?.close();
  fleet?.end();
  await Promise.all([...(gateways ?? []), services].map((w) => w?.end()));
  model?.end();
});

test("rates are those of all processes, and one that does not answer is named", async () => {
  const { page, errors } = await visit(browser, `${gateways[0]?.url}/installation/rates`);
  await page.waitForFunction(() => document.querySelector(".sources summary")?.textContent?.startsWith("From 3 processes: gateway × 3"));
  await page.click(".sources summary");
  expect(await page.locator(".sources li").count()).toBe(3);
  expect(await page.locator(".loud").count()).toBe(0);
  expect(await faults(page)).toEqual([]);

  await gateways[1]?.kill();
  await page.waitForSelector(".loud li");
  expect(await page.textContent(".loud")).toMatch(/^1 process has not answered\. .*gateway [0-9a-f-]+…[0-9a-f-]+$/);
  expect(await page.textContent(".sources summary")).toContain("From 2 processes");
  expect(await faults(page)).toEqual([]);
  await gateways[1]?.restart();
  await page.waitForFunction(() => document.querySelector(".sources summary")?.textContent?.startsWith("From 3 processes"));
  expect(errors).toEqual([]);
  await page.close();
});

test("one of two gateways is killed while an answer is written and every room is open", async () => {
  const talk = await visit(browser, fleet.url);
  await talk.page.fill(".composer textarea", "say it slowly");
  await talk.page.keyboard.press("Enter");
  await talk.page.waitForFunction(() => document.querySelector(".item.answer")?.textContent?.includes("word3"));
  const rooms = await Promise.all(
    ["/sessions", "/questions", "/teams", "/swarm", "/installation/health"].map(async (path) => {
      const { page, errors } = await visit(browser, fleet.url + path, { width: 1100, height: 850 }); // sessions as a list, and no table
      await page.waitForSelector("main :is(h1, h2, input)");
      return { page, errors, removed: await removals(page, "body", "main > *") };
    }),
  );
  const removed = await removals(talk.page, "body", ".item");

  await gateways[0]?.kill();
  await talk.page.waitForFunction(() => document.querySelector(".session .head .chip:not(.state-running, .state-waiting)"));
  expect(await talk.page.locator(".item.answer").count()).toBe(1);
  expect((await talk.page.textContent(".item.answer"))?.replace(/\s+/g, " ")).toContain(words);
  expect(await removed()).toBe(0);

  // Everything goes on at the other one: a second question, and the list of sessions follows it.
  await talk.page.fill(".composer textarea", "say it again");
  await talk.page.keyboard.press("Enter");
  await talk.page.waitForFunction(() => document.querySelectorAll(".item.answer").length === 2);
  const [sessions] = rooms;
  await sessions?.page.waitForFunction(() => document.querySelector("main")?.textContent?.includes("2 runs"));
  for (const r of rooms) {
    expect(await r.removed(), r.page.url()).toBe(0);
    expect(r.errors, r.page.url()).toEqual([]);
    await r.page.close();
  }
  expect(talk.errors).toEqual([]);
  await talk.page.close();
});

test("an answer of the inbox reaches its run while the gateway that showed the question is dead", async () => {
  const page = await visit(browser, fleet.url);
  await page.page.fill(".composer textarea", "write hello.md");
  await page.page.keyboard.press("Enter");
  await page.page.waitForSelector(".session .question");
  const inbox = await visit(browser, `${fleet.url}/questions`);
  await inbox.page.waitForSelector(".cards .question");
  const removed = await removals(page.page, "body", ".item");

  await Promise.all(gateways.map((g) => g.kill())); // neither is there while the answer is given
  await inbox.page.click('.cards [data-answer="approve"]');
  await gateways[1]?.restart();
  await page.page.waitForFunction(() => document.querySelector(".item.answer:last-of-type")?.textContent?.includes("The file is written."));
  await inbox.page.waitForFunction(() => !document.querySelector(".cards .question"));
  expect(await page.page.locator(".item.decision").count()).toBe(1);
  expect(await removed()).toBe(0);
  await gateways[0]?.restart();
  for (const { page: p, errors } of [page, inbox]) {
    expect(errors).toEqual([]);
    await p.close();
  }
});

test("gateways are killed one after the other while three tabs of a browser show what is written", async () => {
  const context = await browser.newContext({ viewport: { width: 1300, height: 850 } });
  const client = new WaggleClient({ url: fleet.url });
  const [one, two] = [client.session(), client.session()];
  const runs = [one.send("say it slowly"), two.send("say it slowly, too")];
  const tabs: { page: Page; id: string; removed: () => Promise<number> }[] = [];
  for (const { id } of [one, one, two]) {
    const page = await context.newPage();
    page.setDefaultTimeout(maxWait);
    await page.goto(`${fleet.url}/sessions/${id}`);
    await page.waitForFunction(() => document.querySelector(".item.answer")?.textContent?.includes("word3"));
    tabs.push({ page, id, removed: await removals(page, "body", ".item, .chip") });
  }
  let over = false;
  const results = Promise.all(runs.map((r) => r.result())).finally(() => {
    over = true;
  });
  let kills = 0;
  for (; !over || kills < 4; kills++) await gateways[kills % 2]?.restart();
  const answers = await results;
  console.log(`${kills} gateways killed`);
  for (const { page, id, removed } of tabs) {
    await page.waitForFunction(() => document.querySelector(".session .head .chip:not(.state-running, .state-waiting)"));
    expect(await page.locator(".item.answer").count()).toBe(1);
    const text = (await page.textContent(".item.answer .markdown"))?.trim();
    expect(text).toBe(answers[id === one.id ? 0 : 1]?.text);
    expect(await removed()).toBe(0);
  }
  client.close();
  await context.close();
});
