import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch } from "../../sdk/typescript/testing/browser.ts";
import { Model, up, type Waggle } from "../../sdk/typescript/testing/server.ts";
import { visit } from "./page.ts";
import { Trace } from "./trace.ts";

// Answers in Markdown that stream for minutes at 60 pieces a second: what the page's own thread takes for them, and what it keeps.

const minutes = Number(process.env["WAGGLE_STREAM_MINUTES"] ?? 10);
const pieces = 3600;

/** A piece of an answer each: headings, paragraphs with emphasis, lists with code in their items, and blocks of code. */
const block = [
  "\n\n## Part\n\nA **bold** word, `code` and text that goes on for some words more, as answers do.\n\n",
  "1. first, with some words\n\n   ```ts\n   const a = 1;\n   ```\n\n   and a paragraph\n2. second\n   - nested one\n   - nested two\n\n",
  "| Name | Price |\n|---|---:|\n| tea | 3.50 |\n| milk | 1.20 |\n\n",
].join("");
const words = block.repeat(200).split(" ").slice(0, pieces).join(" ");

let browser: Browser;
let model: Model;
let waggle: Waggle;

beforeAll(async () => {
  model = await Model.start(() => ({ text: words, pauseMs: 1000 / 60 }));
  [browser, waggle] = await Promise.all([
    launch(),
    up("", { ...model.env, WAGGLE_QUOTA_TENANT_TOKENS: "-1", WAGGLE_QUOTA_PRINCIPAL_TOKENS: "-1" }),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await waggle?.end();
  model?.end();
});

// The aim is no task above 50 ms and 15 s a minute on a machine with nothing else to do. The bounds leave room for a busy one.
test(
  "answers that stream for minutes take a part of one processor, and the page's memory stays level",
  async () => {
    const { page, errors } = await visit(browser, waggle.url);
    const session = await page.context().newCDPSession(page);
    /** MiB of the page's heap after a collection. */
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
    };
    const trace = await Trace.start(browser);
    const heaps: number[] = [];
    const dear: string[] = [];
    for (let minute = 1; minute <= minutes; minute++) {
      const began = Date.now();
      await page.fill(".composer textarea", `minute ${minute}`);
      await page.keyboard.press("Enter");
      await page.locator(".item.user", { hasText: `minute ${minute}` }).waitFor({ state: "attached" });
      await page.waitForSelector(".session .head .chip:is(.state-running)");
      await page.waitForSelector(".session .head .chip:not(.state-running, .state-waiting)", { state: "attached", timeout: 600_000 });
      const { all, longest } = await trace.spent(page);
      heaps.push(await heap());
      const seconds = (Date.now() - began) / 1000;
      console.log(
        `minute ${minute}: ${(pieces / seconds).toFixed(0)} pieces a second, ${(all / 1000).toFixed(1)} s of the processor, longest task ${longest.toFixed(0)} ms, heap ${heaps.at(-1)?.toFixed(1)} MiB`,
      );
      if (longest >= 100 || all / seconds >= 400) dear.push(`minute ${minute}`);
    }
    expect(dear).toEqual([]);
    const [first = 0, last = 0] = [heaps[Math.min(1, heaps.length - 1)], heaps.at(-1)];
    expect(last - first).toBeLessThan(4);
    await trace.stop(page);
    expect(errors).toEqual([]);
    await page.close();
  },
  (minutes + 5) * 120_000,
);
