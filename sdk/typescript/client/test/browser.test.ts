import { fileURLToPath } from "node:url";
import type { Question } from "@waggle-dev/client";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, Site } from "../../testing/browser.js";
import { freePort, Line, up, type Waggle } from "../../testing/server.js";

let waggle: Waggle;
let proxy: Line;
let site: Site;
let browser: Browser;

beforeAll(async () => {
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL("../src/index.ts", import.meta.url))],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  const port = await freePort();
  site = await Site.start(
    {},
    {
      "/": `<!doctype html><title>test</title><script type="module">window.waggle = await import("/waggle.js");</script>`,
      "/waggle.js": bundle.outputFiles[0]?.text ?? "",
    },
    port,
  );
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`);
  proxy = await Line.to(waggle.url);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  site?.end();
  proxy?.end();
  await waggle?.end();
});

test("in Chromium: a chat, a plan with an approval, and a restarted step over a socket, with cut lines", async () => {
  const { page, errors } = await open(browser, site.origin);
  await page.exposeFunction("cut", () => proxy.cut());
  await page.waitForFunction("window.waggle");
  const seen = await page.evaluate(async (url) => {
    const { WaggleClient } = (window as unknown as { waggle: typeof import("@waggle-dev/client") }).waggle;
    const client = new WaggleClient({ url, backoff: { min: 5, max: 50 } });
    const session = client.sessions.open();
    const types: string[] = [];
    const seqs: number[] = [];
    session.on((e) => {
      types.push(e.type);
      seqs.push(e.sequence);
      if (e.sequence % 4 === 0) void (window as unknown as { cut(): void }).cut();
    });
    const chat = await session.send("what does notes.md say?").result();
    const run = session.send("which files are in the workspace, and what does notes.md say?", { mode: "plan", confirmPlan: true });
    const asked = await new Promise<Question>((go) => session.onQuestions((open) => open[0] && go(open[0])));
    await session.answer(asked, true);
    const plan = await run.result();
    const again = new Promise((go) => session.on((e) => e.type === "run.completed" && go(e)));
    await session.restartStep("task_1");
    await again;
    client.close();
    return { chat: chat.text, plan: plan.text, types, seqs };
  }, proxy.url);
  expect(seen.chat).toContain("buy milk");
  expect(seen.plan).toContain("notes.md");
  expect(seen.types).toContain("step.restarted");
  expect(seen.seqs).toEqual(seen.seqs.map((_, i) => i + 1));
  expect(proxy.cuts).toBeGreaterThan(5);
  expect(errors).toEqual([]);
  console.log(`Chromium: ${seen.seqs.length} events in order, ${proxy.cuts} lines cut`);
});
