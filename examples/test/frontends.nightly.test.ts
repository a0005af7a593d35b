import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open } from "../../sdk/typescript/testing/browser.js";
import { freePort, Model, maxWait, up, type Waggle, within } from "../../sdk/typescript/testing/server.js";
import { askedTogether, carriedOut, complete, edited, failed, picture, script, showing, stopped, twoWindows } from "./frontend.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** How long a model that fails is asked again. */
const short = { WAGGLE_WORKER_RETRY_TIME: "3s", WAGGLE_WORKER_RUN_RETRY_TIME: "3s" };

let waggle: Waggle;
let model: Model;
let browser: Browser;
let runtime: { url: string; end(): Promise<void> };

beforeAll(async () => {
  model = await Model.start(script);
  waggle = await up("", { ...model.env, WAGGLE_TOOLS_BUILTIN_APPROVAL: "always", ...short });
  runtime = await copilotkit();
  browser = await launch();
}, 4 * maxWait); // CopilotKit's chat has 30 MB of sources
afterAll(async () => {
  await browser?.close();
  await runtime?.end();
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

test(
  "CopilotKit: two questions at once, each with its answer",
  async () => {
    const { page, errors } = await open(browser, runtime.url);
    await showing(page, "copilotkit-together", () => askedTogether(page, "textarea", "[data-testid=copilot-send-button]"));
    expect(errors).toEqual([]);
    await page.close();
  },
  4 * maxWait,
);

test(
  "CopilotKit: a call is approved with other arguments, and those that do not fit are asked about again",
  async () => {
    const { page } = await open(browser, runtime.url); // CopilotKit writes what is refused to the console, too
    await showing(page, "copilotkit-edit", () => edited(page, "copilotkit", "textarea", "[data-testid=copilot-send-button]"));
    await page.close();
  },
  4 * maxWait,
);

test(
  "CopilotKit: a run that is stopped keeps what was said",
  async () => {
    const { page, errors } = await open(browser, runtime.url);
    const send = "[data-testid=copilot-send-button]"; // it stops, too
    await showing(page, "copilotkit-stop", () => stopped(page, "copilotkit", "textarea", send, send));
    expect(errors).toEqual([]);
    await page.close();
  },
  4 * maxWait,
);

test(
  "CopilotKit: a run that fails says so, and what is tried again before",
  async () => {
    const { page } = await open(browser, runtime.url); // CopilotKit writes the failure to the console, too
    await showing(page, "copilotkit-failed", () => failed(page, "textarea", "[data-testid=copilot-send-button]"));
    await page.close();
  },
  4 * maxWait,
);

test(
  "CopilotKit: two windows of one thread show the same",
  async () => {
    const one = await open(browser, runtime.url);
    const two = await open(browser, "about:blank");
    const walk = () => twoWindows(one.page, two.page, "textarea", "[data-testid=copilot-send-button]");
    await showing(one.page, "copilotkit-one", () => showing(two.page, "copilotkit-two", walk));
    expect([...one.errors, ...two.errors]).toEqual([]);
    await one.page.close();
    await two.page.close();
  },
  4 * maxWait,
);

test(
  "CopilotKit: a plan with an approval, over reloads and a killed server",
  async () => {
    const { page, errors } = await open(browser, runtime.url);
    await showing(page, "copilotkit", () =>
      carriedOut(page, "copilotkit", "textarea", "[data-testid=copilot-send-button]", () => waggle.restart()),
    );
    await complete(page, waggle.url);
    await page.setViewportSize({ width: 390, height: 780 });
    await picture(page, "copilotkit-narrow");
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(errors).toEqual([]);
    await page.close();
  },
  4 * maxWait,
);
