// Makes the pictures of the rooms for docs/CONSOLE.md: each room in light and dark. Needs bin/waggle, chromium, and cwebp of Debian's webp.
// With a folder as its argument it writes PNG files there instead, in three widths, to be looked at.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { images, staged, url } from "./demo.mjs";
import { fill } from "./runs.mjs";

const to = process.argv[2];
const widths = to ? [380, 1440, 2560] : [1440];

/** The rooms: a path, and what is there once the room is. */
const rooms = ({ files, again, planned, waiting, team, task }) => ({
  start: ["/", ".ideas li"],
  sessions: ["/sessions", ".sessions .title"],
  session: [`/sessions/${planned}`, ".item.answer:not(.of-step)"],
  plan: [`/sessions/${waiting}`, ".question .editor li"],
  trace: [`/sessions/${planned}?view=trace`, ".trace .bar"],
  log: [`/sessions/${files}?view=log`, ".log .row .type"],
  compare: [`/compare?a=session/${files}&b=session/${again}`, "h1"],
  question: ["/questions", ".cards .question"],
  team: [`/teams/${team}`, ".question"],
  swarm: ["/swarm", ".agents > li"],
  tool: ["/swarm/tools", "h1"],
  task: [`/swarm/tasks/${task}`, "h1"],
  installation: ["/installation/health", "h1"],
  connections: ["/installation/connections", "h1"],
  audit: ["/installation/audit", "h1"],
});

/** The rooms that docs/CONSOLE.md shows. */
const shown = ["start", "sessions", "plan", "trace", "question", "compare", "team", "swarm", "task", "installation"];

await staged(async (browser, folder) => {
  const filled = await fill();
  const all = rooms(filled);
  if (to) mkdirSync(to, { recursive: true });
  for (const [name, [path, there]] of Object.entries(all).filter(([name]) => to || shown.includes(name)))
    for (const colorScheme of ["light", "dark"])
      for (const width of widths) {
        const height = width === 380 ? 800 : width === 1440 ? 860 : 1300;
        const page = await browser.newPage({ viewport: { width, height }, colorScheme, reducedMotion: "reduce" });
        await page.goto(url + path);
        await page.waitForSelector(there, { timeout: 15_000 }).catch(() => console.error(`${name}: ${there} is not there`));
        await page.waitForTimeout(1500); // lists and charts follow
        const file = join(to ?? folder, `${name}-${width}-${colorScheme}.png`);
        await page.screenshot({ path: file, animations: "disabled", caret: "hide" });
        await page.close();
        if (to) continue;
        execFileSync("cwebp", ["-quiet", "-q", "85", file, "-o", join(images, `console-${name}-${colorScheme}.webp`)]);
        rmSync(file);
      }
  await filled.stop();
});
