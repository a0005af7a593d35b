// Makes the walk-through of the README and the picture of a question in docs/CONSOLE.md, of a real Waggle in a real Chromium: from the start page to
// a plan that was changed and confirmed and a tool that was approved. Needs bin/waggle, chromium, and img2webp of Debian's webp.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const images = here("../../docs/images/");
const folder = mkdtempSync(join(tmpdir(), "waggle-walk-"));
const workspace = mkdtempSync(join(folder, "workspace-"));
writeFileSync(join(workspace, "notes.md"), "buy milk\ncall Ann about the picnic\n");

const [addr, nats, telemetry] = [19801, 19802, 19803].map((port) => `127.0.0.1:${port}`);
const waggle = spawn(
  process.env.WAGGLE_E2E_BINARY ?? here("../../bin/waggle"),
  ["up", "--addr", addr, "--nats-addr", nats, "--telemetry-addr", telemetry, "--data", join(folder, "data"), "--workspace", workspace],
  { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, WAGGLE_TOOLS_BUILTIN_APPROVAL: "writes" }, stdio: "ignore" },
);

/** Waits until the gateway is ready. */
async function ready() {
  for (;;) {
    const ok = await fetch(`http://${addr}/readyz`).then(
      (r) => r.ok,
      () => false,
    );
    if (ok) return;
    if (waggle.exitCode !== null) throw new Error("waggle has ended");
    await new Promise((go) => setTimeout(go, 100));
  }
}

const frames = [];

/** Takes a frame that stays for so many milliseconds. */
async function frame(page, ms) {
  const file = join(folder, `${frames.length}.png`);
  await page.screenshot({ path: file, animations: "disabled", caret: "hide" });
  frames.push({ file, ms });
}

/** Goes from the start page to the end of the plan. `take` gets each moment, and `asked` the one at which a tool waits. */
async function walk(page, take, asked) {
  const request = "Which files are in the workspace? What does notes.md say? Write hello to hello.md";
  await page.goto(`http://${addr}/`);
  await page.waitForSelector(".ideas li");
  await take(page, 1800);
  await page.click('.composer .segments :text-is("Plan")');
  for (let n = 12; n < request.length; n += 12) {
    await page.fill(".composer textarea", request.slice(0, n));
    await take(page, 120);
  }
  await page.fill(".composer textarea", request);
  await take(page, 900);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".question .editor li");
  await take(page, 2500);
  await page.click(".editor li:first-child .title");
  await page.fill(".editor li:first-child input", "List all files");
  await take(page, 1600);
  await page.click('[data-answer="approve"]');
  await page.waitForSelector('.question:not(:has(.editor)) [data-answer="approve"]');
  await take(page, 3000);
  await asked(page);
  await page.click('.question:not(:has(.editor)) [data-answer="approve"]');
  await page.waitForFunction(() => document.querySelector(".session .head .chip")?.textContent?.includes("Idle"));
  await page.waitForSelector(".item.answer");
  await take(page, 3500);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  await ready();
  const small = { width: 1000, height: 640 };
  await walk(await browser.newPage({ viewport: small, colorScheme: "light" }), frame, async () => {});
  const list = frames.flatMap(({ file, ms }) => ["-d", String(ms), file]);
  execFileSync("img2webp", ["-loop", "0", "-lossy", "-q", "80", "-m", "6", ...list, "-o", join(images, "console-walk.webp")]);
  await walk(
    await browser.newPage({ viewport: small }),
    async () => {},
    async () => {
      for (const colorScheme of ["light", "dark"]) {
        const page = await browser.newPage({ viewport: { width: 1280, height: 540 }, deviceScaleFactor: 1.25, colorScheme });
        await page.goto(`http://${addr}/questions`);
        await page.waitForSelector(".cards .question");
        await page.screenshot({ path: join(images, `console-question-${colorScheme}.png`), animations: "disabled" });
        await page.close();
      }
    },
  );
} finally {
  await browser.close();
  const ended = new Promise((go) => waggle.once("exit", go));
  waggle.kill();
  await ended;
  rmSync(folder, { recursive: true, force: true });
}
