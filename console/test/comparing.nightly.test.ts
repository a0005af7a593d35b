import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { faults, stage, visit } from "./page.ts";

// Two runs beside each other, in Chromium, of the real binary.

const on = stage();

/** A new session in which these messages are answered, one after the other. */
async function session(page: Page, ...messages: string[]): Promise<string> {
  await page.click('nav a:has-text("Start")');
  await page.waitForSelector(".start");
  for (const [i, text] of messages.entries()) {
    await page.fill(".composer textarea", text);
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      (n) =>
        document.querySelector(".session .head .chip:not(.state-running, .state-waiting)") &&
        document.querySelectorAll(".item.user").length === n &&
        document.querySelectorAll(".item.answer").length >= n,
      i + 1,
    );
  }
  return new URL(page.url()).pathname.split("/").at(-1) as string;
}

test("two runs are chosen with keys and compared: what differs is focused, and n and p go on", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url, { width: 1100, height: 850 }); // a list, and no table
  await session(page, "what does notes.md say?");
  await session(page, "say hello", "what does missing.md say?");
  await page.goto(`${on.waggle.url}/sessions`);
  // The list follows the logs: it has its last order when the newest session has both of its runs and is idle.
  await page.waitForFunction(() => /2 runs.*Completed|Completed.*2 runs/.test(document.querySelector(".sessions .row")?.textContent ?? ""));
  expect(await page.locator(".sessions .row").count()).toBe(2);
  await page.focus(".sessions .rows");
  for (const n of [1, 2]) {
    await page.keyboard.press("j");
    await page.waitForSelector(`.sessions .row.picked:nth-child(${n})`);
    await page.keyboard.press("x");
    await page.waitForFunction((count) => document.querySelectorAll(".chosen-run").length === count, n);
  }
  expect(await faults(page)).toEqual([]);
  await page.keyboard.press("d");
  await page.waitForSelector(".compare .pair");
  expect(new URL(page.url()).pathname).toBe("/compare");

  // The first difference is picked: the calls of the model, by key.
  expect(await page.locator(".compare .row.picked .pair.differs").count()).toBe(1);
  expect(await page.textContent(".compare .changes h3")).toBe("calls › 0 › arguments › path");
  const values = () => page.locator(".compare .value code").allTextContents();
  const [a = "", b = ""] = await values();
  expect([a.slice(2), b.slice(2)].sort()).toEqual(["missing.md", "notes.md"]);
  const rows = await page.locator(".compare .pair.differs").count();
  expect(await page.textContent(".compare .head .count")).toBe(`${rows} differences`);
  const picked = () => page.evaluate(() => document.querySelector(".rows")?.getAttribute("aria-activedescendant"));
  const first = await picked();
  await page.keyboard.press("n");
  await page.waitForFunction((id) => document.querySelector(".rows")?.getAttribute("aria-activedescendant") !== id, first);
  await page.keyboard.press("p");
  await page.waitForFunction((id) => document.querySelector(".rows")?.getAttribute("aria-activedescendant") === id, first);
  // Two keys before the page is painted: the second goes on from what the first picked.
  await page.evaluate(async () => {
    for (const key of ["n", "p"]) {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      await new Promise((go) => setTimeout(go));
    }
  });
  expect(await picked()).toBe(first);

  // The other way around; another run of the same session; the same run twice.
  await page.click('.compare .head button:has-text("Swap")');
  await page.waitForFunction((text) => document.querySelector(".compare .value code")?.textContent === text, `− ${b.slice(2)}`);
  await page.selectOption(".compare .side select", { index: 0 });
  await page.waitForFunction(() => document.querySelector(".compare .side:has(select) header")?.textContent?.includes("say hello"));
  const second = await page.evaluate(() => document.querySelector(".compare .side:has(select)")?.matches(":nth-child(2)"));
  const ref = encodeURIComponent(new URL(page.url()).searchParams.get(second ? "b" : "a") as string);
  expect(decodeURIComponent(ref)).toMatch(/^session\/[^/]+\/[^/]+$/);
  await page.goto(`${on.waggle.url}/compare?a=${ref}&b=${ref}`);
  await page.waitForFunction(() => document.querySelector(".compare .head .count")?.textContent === "The runs did the same.");
  expect(await page.locator(".compare .pair.differs").count()).toBe(0);
  expect(errors).toEqual([]);
  await page.close();
});

test("a session is compared by its button and by the palette, in light and dark, wide and narrow", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url);
  const one = await session(page, "what does notes.md say?");
  await page.click('.head button:has-text("Compare")');
  await page.waitForSelector('.head button[aria-pressed="true"]');
  await session(page, "What is 6 * 7?");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("compare");
  await page.waitForSelector('dialog [role="option"]:has-text("Compare this")');
  await page.keyboard.press("Enter");
  await page.waitForSelector(".compare .pair");
  expect(page.url()).toContain(one);
  const url = page.url();
  for (const [colorScheme, size] of [
    ["light", { width: 1300, height: 850 }],
    ["dark", { width: 380, height: 760 }],
  ] as const) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
    await page.waitForSelector(".compare .changes");
    expect(await faults(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  }
  await page.goto(`${on.waggle.url}/compare`);
  await page.waitForSelector(".face");
  expect(await faults(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.close();
});
