// A real Waggle of a few seconds, and a real Chromium, for pictures of the console. Needs bin/waggle and chromium.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** The path of something beside this script. */
export const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Where the pictures of the docs are. */
export const images = here("../../docs/site/images/");

const [addr, nats, telemetry] = [19801, 19802, 19803].map((port) => `127.0.0.1:${port}`);

/** The address of the console. */
export const url = `http://${addr}`;

/** Waits until the gateway is ready. */
async function ready(waggle) {
  for (;;) {
    const ok = await fetch(`${url}/readyz`).then(
      (r) => r.ok,
      () => false,
    );
    if (ok) return;
    if (waggle.exitCode !== null) throw new Error("waggle has ended");
    await new Promise((go) => setTimeout(go, 100));
  }
}

/** Calls `use` with a browser and an empty folder, while `waggle demo` runs, and ends all of them. */
export async function staged(use) {
  const folder = mkdtempSync(join(tmpdir(), "waggle-pictures-"));
  const workspace = mkdtempSync(join(folder, "workspace-"));
  writeFileSync(join(workspace, "notes.md"), "buy milk\ncall Ann about the picnic\n");
  const options = { addr, "nats-addr": nats, "telemetry-addr": telemetry, data: join(folder, "data"), workspace };
  const waggle = spawn(
    process.env.WAGGLE_E2E_BINARY ?? here("../../bin/waggle"),
    ["demo", "--no-browser", ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])],
    { cwd: folder, env: { PATH: process.env.PATH, HOME: folder }, stdio: "ignore" },
  );
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  try {
    await ready(waggle);
    await use(browser, folder);
  } finally {
    await browser.close();
    if (waggle.exitCode === null) {
      const ended = new Promise((go) => waggle.once("exit", go));
      waggle.kill();
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  }
}
