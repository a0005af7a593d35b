// Makes the films of the README and docs/CONSOLE.md: the plug is pulled in the middle of an answer, and a plan is changed and confirmed.
// Needs bin/waggle, chromium, and img2webp of Debian's webp. Arguments: the names of the films to make, plug and plan; without one both.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { images, staged, url } from "./demo.mjs";

/** Makes a film of the frames that `play` takes, each with the milliseconds for which it stays. */
async function film(name, play) {
  const frames = [];
  const page = await browser.newPage({ viewport: { width: 1000, height: 640 }, colorScheme: "light" });
  await play(page, async (_, ms) => {
    const file = join(folder, `${name}-${frames.length}.png`);
    await page.screenshot({ path: file, animations: "disabled", caret: "hide" });
    frames.push("-d", String(ms), file);
  });
  await page.close();
  execFileSync("img2webp", ["-loop", "0", "-lossy", "-q", "80", "-m", "6", ...frames, "-o", join(images, `${name}.webp`)]);
}

/** Kills the server while it answers, and shows what that cost. */
async function plug(page, take) {
  const during = async (ms, selector) => {
    const there = page.locator(selector);
    while ((await there.count()) === 0) await take(page, ms);
  };
  await page.goto(`${url}/`);
  await page.waitForSelector(".ideas li:nth-child(4)");
  await take(page, 1500);
  await page.hover(".ideas li:nth-child(4) button");
  await take(page, 700);
  await page.click(".ideas li:nth-child(4) button");
  await during(120, '.item.answer :text("People who watched it")');
  await page.hover(".plug button");
  await take(page, 900);
  await page.click(".plug button");
  await during(300, '.plug :text("Back after")');
  await take(page, 1500);
  await page.waitForSelector('.plug :text("The answer continued after")');
  await take(page, 1200);
  await during(150, '.item.answer :text("The length of the run")');
  await page.waitForSelector(".plug.counted");
  await take(page, 4000);
}

/** Goes from the start page to the end of a plan that was changed and confirmed. */
async function walk(page, take) {
  const request = "Which files are in the workspace? What does notes.md say? Write hello to hello.md";
  await page.goto(`${url}/`);
  await page.waitForSelector(".ideas li");
  await take(page, 1800);
  await page.click('.composer .segments :text-is("Plan")');
  for (let n = 12; n < request.length; n += 12) {
    await page.fill(".composer textarea", request.slice(0, n));
    await take(page, 120);
  }
  await page.fill(".composer textarea", request);
  await take(page, 900);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".question .editor li");
  await take(page, 2500);
  await page.click(".editor li:first-child .title");
  await page.fill(".editor li:first-child input", "List all files");
  await take(page, 1600);
  await page.click('[data-answer="approve"]');
  await page.waitForSelector('.question:not(:has(.editor)) [data-answer="approve"]');
  await take(page, 3000);
  await page.click('.question:not(:has(.editor)) [data-answer="approve"]');
  await page.waitForFunction(() => document.querySelector(".session .head .chip:not(.state-running, .state-waiting)"));
  await page.waitForSelector(".item.answer:not(.of-step)");
  await take(page, 3500);
}

let browser;
let folder;
await staged(async (b, f) => {
  [browser, folder] = [b, f];
  const wanted = process.argv.length > 2 ? process.argv.slice(2) : ["plug", "plan"];
  if (wanted.includes("plug")) await film("console-plug", plug);
  if (wanted.includes("plan")) await film("console-walk", walk);
});
