import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { open } from "../../sdk/typescript/testing/browser.ts";
import { patience } from "../../sdk/typescript/testing/server.ts";

const axe = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** A page of the size at the address, and the errors that it reports. */
export async function visit(browser: Browser, url: string, size = { width: 1300, height: 850 }): Promise<{ page: Page; errors: string[] }> {
  const { page, errors } = await open(browser, url);
  page.setDefaultTimeout(patience);
  await page.setViewportSize(size);
  return { page, errors };
}

/** The faults that axe finds. The page's own policy would keep axe out: it goes in past it. */
export async function faults(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.setBypassCSP", { enabled: true });
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", {
    expression:
      "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ') + ' ' + n.failureSummary).slice(0, 3).join('; ')))",
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  return result.value as string[];
}
