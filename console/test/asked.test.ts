import { defineAgent } from "@waggle-dev/client/swarm";
import { expect, test } from "vitest";
import { faults, stage, visit } from "./page.ts";

const on = stage();

test("an agent of the swarm asks in the session: the inbox lists the question once, and the agent gets the answer", async () => {
  const agent = await defineAgent({
    name: "Painter",
    run: async (task) =>
      `painted ${await task.ask("Which colour should the house have?", { options: ["red", "green"], timeoutMs: 600_000 })}`,
  }).serve({ url: on.waggle.url });
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await page.selectOption('.composer select[aria-label="Who answers"]', "Painter");
  await page.fill(".composer textarea", "Paint my house, please.");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".question");
  expect(await page.textContent(".question")).toContain("Which colour should the house have?");
  expect(await page.$$eval(".question datalist option", (all) => all.map((o) => (o as HTMLOptionElement).value))).toEqual(["red", "green"]);
  expect(await faults(page)).toEqual([]);
  const inbox = await visit(on.browser, `${on.waggle.url}/questions`);
  await inbox.page.waitForSelector(".question");
  expect(await inbox.page.locator(".question").count()).toBe(1);
  expect(await faults(inbox.page)).toEqual([]);
  await page.fill(".question input", "green");
  await page.click('.question [data-answer="approve"]');
  await page.waitForFunction(() => document.querySelector(".item.answer")?.textContent?.includes("painted green"));
  await page.waitForFunction(() => !document.querySelector(".question"));
  await inbox.page.waitForFunction(() => !document.querySelector(".question"));
  expect([...errors, ...inbox.errors]).toEqual([]);
  await agent.stop();
});
