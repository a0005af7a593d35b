import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { launch, open } from "../../sdk/typescript/testing/browser.ts";
import { maxWait, up, type Waggle } from "../../sdk/typescript/testing/server.ts";

const axe = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** A page of the size at the address, and the errors that it reports. */
export async function visit(browser: Browser, url: string, size = { width: 1300, height: 850 }): Promise<{ page: Page; errors: string[] }> {
  const { page, errors } = await open(browser, url);
  page.setDefaultTimeout(maxWait);
  await page.setViewportSize(size);
  return { page, errors };
}

/** The faults that axe finds once no colour changes any more. The page's own policy would keep axe out: it goes in past it. */
export async function faults(page: Page): Promise<string[]> {
  await page.evaluate(async () => {
    await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
    await Promise.allSettled(document.getAnimations().flatMap((a) => (a instanceof CSSTransition ? [a.finished] : [])));
  });
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

/** How many violations of the console's security policy browsers have reported to the Waggle, by directive. */
export async function violations(waggle: Waggle): Promise<Record<string, number>> {
  const metrics = await (await fetch(`http://${waggle.option("--telemetry-addr")}/metrics`)).text();
  const all = [...metrics.matchAll(/^waggle_gateway_page_reports_total\{directive="([^"]+)"\} (\d+)$/gm)];
  if (all.length === 0) throw new Error("the gateway counts no reports");
  return Object.fromEntries(all.map((m) => [m[1] as string, Number(m[2])]).filter(([, n]) => n !== 0));
}

/** What all tests of a file share: a browser, and a Waggle with the settings. */
export function stage(settings?: string): { browser: Browser; waggle: Waggle } {
  const on = {} as { browser: Browser; waggle: Waggle };
  beforeAll(async () => {
    [on.browser, on.waggle] = await Promise.all([launch(), up(settings)]);
  });
  afterAll(async () => {
    await on.browser?.close();
    if (on.waggle) expect(await violations(on.waggle)).toEqual({}); // no page of the file has broken the policy
    await on.waggle?.end();
  });
  return on;
}

/** Sends a message of the composer and waits until its run is over. */
export async function ask(page: Page, text: string): Promise<void> {
  await page.fill(".composer textarea", text);
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    () => document.querySelector(".session .head .chip:not(.state-running, .state-waiting)") && document.querySelector(".item.answer"),
  );
}

/** Counts the elements that are removed within another one from now on. */
export async function removals(page: Page, within: string, what: string): Promise<() => Promise<number>> {
  await page.evaluate(
    ([within, what]) => {
      const seen = { removed: 0 };
      (window as unknown as { seen: typeof seen }).seen = seen;
      new MutationObserver((all) => {
        for (const m of all) for (const n of m.removedNodes) if (n instanceof Element && n.matches(what)) seen.removed++;
      }).observe(document.querySelector(within) as Element, { childList: true, subtree: true });
    },
    [within, what] as const,
  );
  return () => page.evaluate(() => (window as unknown as { seen: { removed: number } }).seen.removed);
}
