import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WaggleClient } from "@waggle-dev/client";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, Site } from "../../sdk/typescript/testing/browser.js";
import { freePort, Model, patience, up, type Waggle, within } from "../../sdk/typescript/testing/server.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pictures = process.env["WAGGLE_TS_PICTURES"];

const plan = {
  summary: "the notes, and what follows",
  reasoning: "r",
  tasks: [
    { id: "notes", title: "Read the notes", description: "fetch the file", dependencies: [], priority: 0, capability: "" },
    { id: "next", title: "Say what follows", description: "draw conclusions", dependencies: ["notes"], priority: 0, capability: "" },
  ],
};
const words = (name: string) => Array.from({ length: 30 }, (_, i) => `${name}${i} `).join("");

/** Plans, reads a file in the first task, and speaks slowly. */
function script(messages: { role: string; content: unknown }[], planning: boolean) {
  if (planning) return { text: JSON.stringify(plan) };
  const said = JSON.stringify(messages.filter((m) => m.role === "user").at(-1)?.content ?? "");
  if (said.includes("next29")) return { text: words("sum"), pauseMs: 40 };
  if (said.includes("draw conclusions")) return { text: words("next"), pauseMs: 40 };
  if (messages.at(-1)?.role === "tool") return { text: "buy milk" };
  return { calls: [{ name: "workspace_read_file", args: { path: "notes.md" } }] };
}

let waggle: Waggle;
let model: Model;
let site: Site;
let browser: Browser;
let runtime: { url: string; end(): Promise<void> };

beforeAll(async () => {
  await build({ root: join(root, "examples/assistant-ui"), logLevel: "error" });
  site = await Site.start({ "/assistant-ui/": join(root, "examples/assistant-ui/dist") }, {}, await freePort());
  model = await Model.start(script);
  waggle = await up(`  allowed_origins: ["${site.origin}"]\n`, { ...model.env, WAGGLE_TOOLS_BUILTIN_APPROVAL: "always" });
  runtime = await copilotkit();
  browser = await launch();
}, 4 * patience); // CopilotKit's chat has 30 MB of sources
afterAll(async () => {
  await browser?.close();
  await runtime?.end();
  site?.end();
  await waggle?.end();
  model?.end();
});

/** CopilotKit's runtime and page, as the example starts them. */
async function copilotkit() {
  const port = await freePort();
  const server = spawn("node", [join(root, "examples/copilotkit/server.js")], {
    env: { ...process.env, WAGGLE_URL: waggle.url, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((go) => server.once("exit", go));
  await within(new Promise<void>((go) => server.stdout.on("data", (b) => String(b).includes("open ") && go())), "CopilotKit's runtime");
  return {
    url: `http://127.0.0.1:${port}`,
    end: async () => {
      server.kill("SIGTERM");
      await ended;
    },
  };
}

async function picture(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

// biome-ignore lint/performance/useDomNodeTextContent: what people see
const shown = (page: Page) => page.evaluate(() => document.body.innerText);
const times = (text: string, piece: string) => text.split(piece).length - 1;

/** Waits until the page shows a text. */
async function sees(page: Page, text: string): Promise<void> {
  // biome-ignore lint/performance/useDomNodeTextContent: what people see
  await page.waitForFunction((t) => document.body.innerText.includes(t), text, { timeout: patience });
}

/** Shows what is wrong when a test fails. */
async function showing(page: Page, name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await picture(page, `${name}-failed`);
    console.log(await shown(page));
    throw error;
  }
}

/** A planned run with an approval, reloads in the middle, and a killed server. */
async function carriedOut(page: Page, name: string, input: string, send: string): Promise<void> {
  await page.fill(input, "what do the notes say, and what follows?");
  await page.click(send);
  await sees(page, "2. Say what follows");
  await picture(page, `${name}-plan`);
  await page.click(".question button.main");
  await sees(page, "workspace_read_file");
  await page.waitForSelector(".question", { timeout: patience });
  await page.reload();
  await page.waitForSelector(".question", { timeout: patience });
  await picture(page, `${name}-tool`);
  await page.click(".question button.main");
  await sees(page, "next3 ");
  await page.reload();
  await sees(page, "next9 ");
  await picture(page, `${name}-running`);
  await sees(page, "sum3 ");
  await waggle.restart();
  await sees(page, words("sum").trim());
  await page.waitForFunction(() => document.querySelectorAll(".plan li[data-status=completed]").length === 2, undefined, {
    timeout: patience,
  });
  await picture(page, `${name}-done`);
}

/** Nothing is lost or doubled: on the page, on a page that is opened anew, and in the log. */
async function complete(page: Page): Promise<void> {
  const thread = new URL(page.url()).searchParams.get("thread") as string;
  for (const again of [false, true]) {
    if (again) await page.reload();
    await sees(page, words("sum").trim());
    const text = await shown(page);
    expect(times(text, "what do the notes say, and what follows?")).toBe(1);
    expect(times(text, words("next").trim())).toBe(1);
    expect(times(text, words("sum").trim())).toBe(1);
    expect(times(text, "sum3 ")).toBe(1);
    expect(times(text, "workspace_read_file")).toBe(1);
    expect(await page.locator(".question").count()).toBe(0);
  }
  const client = new WaggleClient({ url: waggle.url });
  const types: string[] = [];
  for await (const e of client.sessions.open(thread).events()) {
    types.push(e.type);
    if (/^run\.(completed|failed|cancelled)$/.test(e.type)) break;
  }
  client.close();
  const of = (type: string) => types.filter((t) => t === type).length;
  expect([of("message.received"), of("tool.called"), of("tool.completed"), of("run.completed")]).toEqual([1, 1, 1, 1]);
}

test(
  "CopilotKit: a plan with an approval, over reloads and a killed server",
  async () => {
    const { page, errors } = await open(browser, runtime.url);
    await showing(page, "copilotkit", () => carriedOut(page, "copilotkit", "textarea", "[data-testid=copilot-send-button]"));
    await complete(page);
    await page.setViewportSize({ width: 390, height: 780 });
    await picture(page, "copilotkit-narrow");
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(errors).toEqual([]);
    await page.close();
  },
  4 * patience,
);

test(
  "assistant-ui: a plan with an approval, over reloads and a killed server",
  async () => {
    const { page, errors } = await open(browser, `${site.origin}/assistant-ui/?url=${encodeURIComponent(waggle.url)}`);
    await showing(page, "assistant-ui", () => carriedOut(page, "assistant-ui", "textarea", "text=Send"));
    await complete(page);
    await page.setViewportSize({ width: 390, height: 780 });
    await picture(page, "assistant-ui-narrow");
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(errors).toEqual([]);
    await page.close();
  },
  4 * patience,
);
