import { expect, test } from "vitest";
import { en } from "../src/words.ts";
import { zh } from "../src/words.zh.ts";
import { ask, faults, stage, visit } from "./page.ts";

const on = stage();

test("the page speaks Chinese, in every room, and stays with it", async () => {
  const { page, errors } = await visit(on.browser, on.waggle.url);
  await ask(page, "what does notes.md say?");
  const session = new URL(page.url()).pathname;
  await page.click("nav .account");
  await page.click('.account-menu label:has-text("中文")');
  await page.waitForFunction((word) => document.querySelector(".session .head .chip")?.textContent?.includes(word), zh["state.completed"]);
  expect(await page.getAttribute("html", "lang")).toBe("zh-CN");
  for (const [colorScheme, size] of [
    ["light", { width: 1300, height: 850 }],
    ["dark", { width: 380, height: 760 }],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    for (const path of [
      "/",
      "/sessions",
      session,
      `${session}?view=trace`,
      "/questions",
      "/teams",
      "/swarm",
      "/installation/health",
      "/installation/config",
    ]) {
      await page.goto(on.waggle.url + path, { waitUntil: "domcontentloaded" });
      await page.waitForFunction((word) => document.querySelector("nav")?.textContent?.includes(word), zh["nav.sessions"]);
      await page.waitForSelector("main :is(h1, h2, .item, .bar)");
      expect(await faults(page), `${path} ${colorScheme}`).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0);
      if (process.env["SHOT"])
        await page.screenshot({ path: `${process.env["SHOT"]}/zh-${colorScheme}${path.replaceAll(/\W/g, "_").slice(0, 12)}.png` });
    }
  }
  await page.setViewportSize({ width: 1300, height: 850 });
  await page.keyboard.press("Control+k");
  await page.fill("dialog input", "语言");
  await page.keyboard.press("Enter"); // as the browser, which is English
  await page.waitForFunction((word) => document.querySelector("nav")?.textContent?.includes(word), en["nav.sessions"]);
  expect(await page.getAttribute("html", "lang")).toBe("en");
  expect(errors).toEqual([]);
  await page.close();
});
