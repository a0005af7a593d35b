import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, Site } from "../../sdk/typescript/testing/browser.js";
import { freePort, Line, Model, maxWait, up, type Waggle } from "../../sdk/typescript/testing/server.js";
import { sources } from "../../sdk/typescript/testing/sources.js";
import { carriedOut, complete, edited, picture, script, showing, spokenTogether, stopped, twoWindows } from "./frontend.js";

// The SDK and a front end of others in Debian's Chromium: one browser, one server, one model that answers as its script says.

const root = fileURLToPath(new URL("../..", import.meta.url));

let waggle: Waggle;
let model: Model;
let line: Line;
let site: Site;
let browser: Browser;

/** A page with the sources of the SDK, under a path of the site. */
async function page(path: string, main: string, html: string): Promise<Record<string, string>> {
  const { outputFiles } = await build({
    entryPoints: [join(root, main)],
    bundle: true,
    format: "esm",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"development"' },
    alias: { ...sources, "@ag-ui/client": join(root, "examples/node_modules/@ag-ui/client") }, // the release that assistant-ui speaks
    write: false,
    outdir: "out",
  });
  const texts = outputFiles.map((f) => [path + basename(f.path), f.text] as const);
  const links = texts.map(([at]) =>
    at.endsWith(".js") ? `<script type="module" src="${at}"></script>` : `<link rel="stylesheet" href="${at}">`,
  );
  return { [path]: html.replace(/<script.*<\/script>/, "") + links.join(""), ...Object.fromEntries(texts) };
}

beforeAll(async () => {
  const hooks = '<!doctype html><title>hooks</title><div id="root"></div>';
  const pages = await Promise.all([
    page("/hooks/", "sdk/typescript/react/test/page.tsx", hooks),
    page("/ai-sdk/", "examples/ai-sdk/src/main.tsx", await readFile(join(root, "examples/ai-sdk/index.html"), "utf8")),
    page("/assistant-ui/", "examples/assistant-ui/src/main.tsx", await readFile(join(root, "examples/assistant-ui/index.html"), "utf8")),
  ]);
  site = await Site.start({}, Object.assign({}, ...pages), await freePort());
  model = await Model.start(script);
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`, { ...model.env, WAGGLE_TOOLS_BUILTIN_APPROVAL: "always" });
  line = await Line.to(waggle.url);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  site?.end();
  line?.end();
  await waggle?.end();
  model?.end();
});

interface Watched extends Window {
  client: import("@waggle-dev/client").WaggleClient;
  seen: { types: string[]; seqs: number[] };
  cut(): void;
}

/** Notes each event of a session in the page, and cuts all lines after every fourth one. */
async function watch(page: Page, id: string): Promise<void> {
  await page.evaluate((id) => {
    const w = window as unknown as Watched;
    w.seen = { types: [], seqs: [] };
    w.client.session(id).on((e) => {
      w.seen.types.push(e.type);
      for (let n = e.from ?? e.sequence; n <= e.sequence; n++) w.seen.seqs.push(n);
      if (e.sequence % 4 === 0) w.cut();
    });
  }, id);
}

/** Says yes to the one question that is open, which names something. */
async function yes(page: Page, what: string): Promise<void> {
  const question = page.locator(".question", { hasText: what });
  await question.waitFor();
  expect(await question.count()).toBe(1);
  await question.locator("button").click();
  await question.waitFor({ state: "detached" });
}

test("the SDK and its hooks in a browser: a chat, a plan with approvals, a restarted step, over cut lines and a reload, exactly", async () => {
  const { page, errors } = await open(browser, "about:blank");
  page.setDefaultTimeout(maxWait);
  await page.exposeFunction("cut", () => line.cut());
  await page.goto(`${site.origin}/hooks/?url=${encodeURIComponent(line.url)}&session=walk`);
  await page.waitForSelector("#text");
  await watch(page, "walk");
  await page.fill("#text", "what do the notes say?");
  await page.click("#chat");
  await yes(page, "read_file");
  await page.waitForSelector("#run[data-status=completed]");
  expect(await page.textContent("#run")).toContain("buy milk");
  await page.fill("#text", "what do the notes say, and what follows?");
  await page.click("#plan");
  await page.waitForSelector(".question");
  await page.reload();
  await page.waitForSelector(".question");
  await watch(page, "walk");
  await page.click(".question button"); // the plan
  await yes(page, "read_file");
  await page.waitForSelector(".plan[data-status=done]");
  expect(await page.locator(".step[data-status=completed]").count()).toBe(2);
  expect(await page.locator(".user").count()).toBe(2);
  await page.waitForFunction(() => document.querySelectorAll(".answer").length >= 2 && !document.querySelector(".question"));
  const ends = () => page.evaluate(() => (window as unknown as Watched).seen.types.filter((t) => t === "run.completed").length);
  await expect.poll(ends, { timeout: maxWait }).toBe(2);
  await page.evaluate(() => (window as unknown as Watched).client.session("walk").restartStep("next"));
  await expect.poll(ends, { timeout: maxWait }).toBe(3);
  const { types, seqs } = await page.evaluate(() => (window as unknown as Watched).seen);
  expect(types).toContain("step.restarted");
  expect(seqs).toEqual(seqs.map((_, i) => i + 1));
  expect(line.cuts).toBeGreaterThan(5);
  expect(errors).toEqual([]);
  console.log(`Chromium: ${seqs.length} events in order, ${line.cuts} lines cut`);
  await page.close();
});

test("assistant-ui over AG-UI: a plan with an approval, over reloads and a killed server", async () => {
  const { page, errors } = await open(browser, `${site.origin}/assistant-ui/?url=${encodeURIComponent(waggle.url)}`);
  await showing(page, "assistant-ui", () => carriedOut(page, "assistant-ui", "textarea", "text=Send", () => waggle.restart()));
  await complete(page, waggle.url);
  await page.setViewportSize({ width: 390, height: 780 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(errors).toEqual([]);
  await page.close();
});

test("the AI SDK's useChat: a plan with an approval, over reloads and a killed server", async () => {
  const { page, errors } = await open(browser, `${site.origin}/ai-sdk/?url=${encodeURIComponent(waggle.url)}`);
  await showing(page, "ai-sdk", () => carriedOut(page, "ai-sdk", "form > input", "text=Send", () => waggle.restart()));
  await complete(page, waggle.url);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width: 380, height: 780 });
    await picture(page, `ai-sdk-${scheme}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  }
  expect(errors).toEqual([]);
  await page.close();
});

test("assistant-ui over AG-UI: steps that speak at the same time", async () => {
  const { page, errors } = await open(browser, `${site.origin}/assistant-ui/?url=${encodeURIComponent(waggle.url)}`);
  await showing(page, "assistant-ui-together", () => spokenTogether(page, "textarea", "text=Send"));
  expect(errors).toEqual([]);
  await page.close();
});

test("assistant-ui over AG-UI: questions at once, of which one is approved with other arguments", async () => {
  const { page } = await open(browser, `${site.origin}/assistant-ui/?url=${encodeURIComponent(waggle.url)}`); // it logs what is refused
  await showing(page, "assistant-ui-edit", () => edited(page, "assistant-ui", "textarea", "text=Send"));
  await page.close();
});

test("assistant-ui over AG-UI: a run that is stopped keeps what was said", async () => {
  const { page, errors } = await open(browser, `${site.origin}/assistant-ui/?url=${encodeURIComponent(waggle.url)}`);
  await showing(page, "assistant-ui-stop", () => stopped(page, "assistant-ui", "textarea", "text=Send", "text=Stop"));
  expect(errors).toEqual([]);
  await page.close();
});

test("assistant-ui over AG-UI: two windows of one thread show the same", async () => {
  const one = await open(browser, `${site.origin}/assistant-ui/?url=${encodeURIComponent(waggle.url)}`);
  const two = await open(browser, "about:blank");
  const walk = () => twoWindows(one.page, two.page, "textarea", "text=Send");
  await showing(one.page, "assistant-ui-one", () => showing(two.page, "assistant-ui-two", walk));
  expect([...one.errors, ...two.errors]).toEqual([]);
  await one.page.close();
  await two.page.close();
});
