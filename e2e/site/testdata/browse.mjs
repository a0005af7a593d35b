// node browse.mjs URL TEXT UNTIL: opens a page, sends a text, and waits until the page shows another.
import { chromium } from "playwright-core";

const [url, text, until] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  page.on("pageerror", (e) => console.error(e));
  page.on("console", (m) => console.error(m.text()));
  await page.goto(url);
  if (text !== "-") {
    await page.getByRole("textbox").first().fill(text);
    await page.keyboard.press("Enter");
  }
  await page.getByText(until).first().waitFor({ timeout: 60_000 });
} finally {
  await browser.close();
}
