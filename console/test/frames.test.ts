import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { faults, visit } from "./page.ts";

let browser: Browser;
let waggle: Waggle;

beforeAll(async () => {
  [browser, waggle] = await Promise.all([launch(), up()]);
});
afterAll(async () => {
  await browser?.close();
  await waggle?.end();
});

test("an event of a log is read as the clients of any protocol get it", async () => {
  const { page, errors } = await visit(browser, waggle.url);
  await page.fill(".composer textarea", "what does notes.md say?");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".session .head .chip")?.textContent?.includes("Idle"));
  await page.click("#tab-log");
  await page.locator(".log .row", { hasText: "tool.completed" }).first().click();
  await page.waitForSelector(".detail .frames pre");
  expect(await page.textContent(".detail .frames")).toContain('"type": "tool.completed"');
  for (const [protocol, word] of [
    ["agui", "TOOL_CALL_RESULT"],
    ["agui-0", "TOOL_CALL_RESULT"],
    ["orbit", '"type": "tool_result"'],
    ["myagent", '"event": "agent.tool_result"'],
    ["asp-client", '"type": "service.completed"'],
    ["agent-team", '"type": "TOOL_EXECUTION_SUCCEEDED"'],
  ] as const) {
    await page.selectOption(".detail select", protocol);
    await page.waitForFunction((word) => document.querySelector(".detail .frames")?.textContent?.includes(word), word);
  }
  for (const [colorScheme, size] of [
    ["light", { width: 1300, height: 850 }],
    ["dark", { width: 380, height: 760 }],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    expect(await faults(page), colorScheme).toEqual([]);
    if (process.env["SHOT"]) await page.screenshot({ path: `${process.env["SHOT"]}/frames-${colorScheme}.png` });
  }
  await page.setViewportSize({ width: 1300, height: 850 });
  await page.selectOption(".detail select", "agui");
  await page.locator(".log .row", { hasText: "session.created" }).first().click(); // AG-UI has no word for it
  await page.waitForSelector('.detail [role="status"]:has-text("nothing")');
  expect(await page.isDisabled(".detail header button:has-text('Copy')")).toBe(true);
  expect(errors).toEqual([]);
  await page.close();
});
