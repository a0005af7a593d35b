import { expect, test } from "vitest";
import { ask, faults, stage, visit } from "./page.ts";

const on = stage();

test("an event of a log is read as the clients of any protocol get it", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await ask(page, "what does notes.md say?");
  await page.click("#tab-log");
  await page.locator(".log .row", { hasText: "tool.completed" }).first().click();
  await page.waitForSelector(".detail .frames pre");
  expect(await page.textContent(".detail .frames")).toContain('"type": "tool.completed"');
  for (const [protocol, word] of [
    ["agui", "TOOL_CALL_RESULT"],
    ["agui-0", "TOOL_CALL_RESULT"],
    ["orbit", '"type": "tool_result"'],
    ["myagent", '"event": "agent.tool_result"'],
    ["agent-team", '"type": "TOOL_LOG"'], // sessions have their plain form there
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
