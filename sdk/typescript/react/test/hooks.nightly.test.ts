import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Question, WaggleClient } from "@waggle-dev/client";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, open, Site } from "../../testing/browser.js";
import { freePort, Line, up, type Waggle } from "../../testing/server.js";

let waggle: Waggle;
let line: Line;
let site: Site;
let browser: Browser;

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The versions of React that the hooks are for, by the folders in which they are installed. */
const versions = {
  "18": createRequire(file("../../../react18/package.json")),
  "19": createRequire(import.meta.url),
};

/** The page with a version of React. */
async function page(require: NodeJS.Require): Promise<string> {
  const react = Object.fromEntries(["react", "react-dom"].map((name) => [name, dirname(require.resolve(`${name}/package.json`))]));
  const bundle = await build({
    entryPoints: [file("page.tsx")],
    bundle: true,
    format: "esm",
    platform: "browser",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"development"' },
    alias: {
      ...react,
      "@waggle-dev/react": file("../src/index.ts"),
      "@waggle-dev/client": file("../../client/src/index.ts"),
      "@waggle-dev/client/store": file("../../client/src/store.ts"),
      "@waggle-dev/client/view": file("../../client/src/view.ts"),
    },
    write: false,
  });
  return bundle.outputFiles[0]?.text ?? "";
}

beforeAll(async () => {
  const texts: Record<string, string> = {};
  for (const [version, require] of Object.entries(versions)) {
    texts[`/${version}/`] =
      `<!doctype html><title>hooks</title><div id="root"></div><script type="module" src="/${version}/page.js"></script>`;
    texts[`/${version}/page.js`] = await page(require);
  }
  site = await Site.start({}, texts, await freePort());
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`);
  line = await Line.to(waggle.url);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  site?.end();
  line?.end();
  await waggle?.end();
});

describe.each(["18", "19"] as const)("React %s", (version) => {
  test("it is this version", async () => {
    const { version: installed } = versions[version]("react/package.json") as { version: string };
    expect(installed).toMatch(new RegExp(`^${version}\\.`));
  });

  test("hooks show a run, a plan with its question, and go on after a cut line and a reload", async () => {
    const id = `hooks-${version}`;
    const { page, errors } = await open(browser, `${site.origin}/${version}/?url=${encodeURIComponent(line.url)}&session=${id}`);
    await page.fill("#text", "what does notes.md say?");
    await page.click("#chat");
    await page.waitForSelector("#run[data-status=completed]");
    expect(await page.textContent("#run")).toContain("buy milk");
    await page.fill("#text", 'use paint {"colour": "red"}');
    await page.click("#chat");
    await page.waitForFunction(() => document.querySelector("#run")?.textContent?.includes("painted red"));
    expect(await page.textContent("#colour")).toBe("red");
    await page.context().setOffline(true);
    await page.fill("#text", "say thanks");
    await page.click("#chat");
    await page.waitForSelector(".user[data-status=pending]");
    await page.context().setOffline(false);
    await page.waitForSelector("#run[data-status=completed]");
    expect(await page.locator(".user[data-status=pending]").count()).toBe(0);
    line.cut();
    await page.fill("#text", "which files are in the workspace, and what does notes.md say?");
    await page.click("#plan");
    await page.waitForSelector(".question");
    line.cut();
    await page.reload();
    await page.waitForSelector(".question");
    expect(await page.locator(".question").count()).toBe(1);
    await page.click(".question button");
    await page.waitForSelector(".plan[data-status=done]");
    await page.waitForFunction(() => document.querySelectorAll(".answer").length >= 4 && !document.querySelector(".question"));
    expect(await page.locator(".user").count()).toBe(4);
    expect(await page.locator(".step[data-status=completed]").count()).toBe(2);
    expect(errors).toEqual([]);
  });

  test("useTeam shows members and their question, and answers it", async () => {
    const client = new WaggleClient({ url: waggle.url });
    const team = await client.teams.create({
      name: "research",
      coordinator: "Lead",
      members: [{ name: "Lead" }, { name: "Reader", tools: ["workspace/*"], auto_execute_tools: false }],
    });
    const { page, errors } = await open(browser, `${site.origin}/${version}/?url=${encodeURIComponent(line.url)}&team=${team.id}`);
    await team.message("what does notes.md say?", { target: "Reader" });
    await page.waitForSelector(".question");
    const asked: Question[] = await new Promise((go) => team.onQuestions((q) => q.length > 0 && go(q)));
    expect(await page.textContent(".question")).toContain(asked[0]?.text);
    await page.click(".question button");
    await page.waitForFunction(() => document.body.textContent?.includes("buy milk"));
    expect(await page.textContent("#members")).toContain("Reader");
    await page.waitForFunction(() => !document.querySelector(".question"));
    expect(errors).toEqual([]);
    client.close();
  });
});
