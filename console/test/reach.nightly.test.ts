import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { faults, stage, visit } from "./page.ts";

// The page for people without a mouse, with colours of their own, without motion, and at four times the size.

const on = stage("tools:\n  builtin_approval: writes\n");
/** A room of each kind, by its path. */
let rooms: string[];

async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await fetch(`${on.waggle.url}/api/v1${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

beforeAll(async () => {
  const { session_id: session } = await post<{ session_id: string }>("/sessions", {});
  await post(`/sessions/${session}/messages`, { content: "Write buy milk to shopping.md, and then read it" });
  const { team_id: team } = await post<{ team_id: string }>("/teams", {
    name: "pair",
    coordinator: "Lead",
    members: [
      { name: "Lead", role: "talks to people" },
      { name: "Writer", role: "writes files", tools: ["workspace/*"] },
    ],
  });
  await post(`/teams/${team}/messages`, { content: "Ask Writer to write hello to hello.md" });
  const { page } = await visit(on.browser, `${on.waggle.url}/questions`);
  await page.locator(".cards .question").nth(1).waitFor();
  await page.close();
  rooms = [
    "/",
    "/sessions",
    ...["talk", "trace", "log"].map((view) => `/sessions/${session}?view=${view}`),
    "/questions",
    "/teams",
    ...["", "?view=messages", "?view=board"].map((view) => `/teams/${team}${view}`),
    "/swarm",
    "/swarm/tools",
    "/swarm/tools/workspace/write_file",
    ...["health", "queues", "connections", "rates", "quotas", "audit", "config", "versions"].map((part) => `/installation/${part}`),
  ];
});

/** Opens a room, and waits until it shows what it has. */
async function enter(path: string, size: { width: number; height: number }, media: Parameters<Page["emulateMedia"]>[0] = {}) {
  const { page, errors } = await visit(on.browser, "about:blank", size);
  await page.emulateMedia(media);
  await page.goto(on.waggle.url + path);
  await page.waitForSelector("main :is(h1, h2, .item, .bar)");
  return { page, errors };
}

/** Presses a key until the focus is on something that the selector names. Each stop on the way has to be seen. */
async function step(page: Page, to: string, key = "Tab"): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press(key);
    const stop = await page.evaluate((to) => {
      const e = document.activeElement as HTMLElement;
      if (e === document.body) return { there: false, seen: "body" };
      const box = e.getBoundingClientRect();
      const inside = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
      const drawn = [e, e.parentElement, e.closest(".composer")].some((x) => {
        const style = x && getComputedStyle(x);
        return style && (style.outlineStyle !== "none" || x?.matches(".composer"));
      });
      return { there: e.matches(to), seen: inside && drawn ? "" : `${e.tagName} ${e.className} ${e.textContent?.slice(0, 30)}` };
    }, to);
    if (stop.seen !== "body") expect(stop.seen).toBe("");
    if (stop.there) return;
  }
  throw new Error(`the key ${key} does not lead to ${to}`);
}

test("a tool is approved, a plan run, and a past moment shown with keys alone", async () => {
  const { page, errors } = await enter("/", { width: 1300, height: 850 });
  await step(page, ".skip");
  await page.keyboard.press("Enter");
  await step(page, ".composer textarea");
  await page.keyboard.type("Write buy milk to list.md, and then read it");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session .question");
  await step(page, '.question [data-answer="approve"]', "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session .head .state-completed");
  await page.waitForSelector(".item.decision");

  await step(page, "#tab-trace", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".trace .bar");
  await step(page, ".scrubber input");
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector(".session.past");
  await step(page, ".frame button");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session:not(.past)");
  await step(page, ".trace .rows");
  await page.keyboard.press("End");
  await page.waitForSelector(".trace .detail");

  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.waitForFunction(() => location.pathname === "/" && document.activeElement?.tagName === "H1");
  await step(page, '.composer input[type="radio"]');
  await page.keyboard.press("ArrowRight");
  await step(page, ".composer textarea", "Shift+Tab");
  await page.keyboard.type("Which files are in the workspace? What is 6 * 7?");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session .question .editor");
  await step(page, '.question [data-answer="approve"]', "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session .head .state-completed");
  expect(errors).toEqual([]);
  await page.close();
});

test("with the reader's own colours and without motion each room shows what is chosen, and nothing moves", async () => {
  for (const path of rooms) {
    const { page, errors } = await enter(path, { width: 1300, height: 850 }, { forcedColors: "active", reducedMotion: "reduce" });
    expect(await faults(page), path).toEqual([]);
    const found = await page.evaluate(() => {
      const paper = getComputedStyle(document.body).backgroundColor;
      const bare = (e: Element) =>
        getComputedStyle(e).backgroundColor === paper || getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)";
      const chosen = '.segments label.on, .states [aria-pressed="true"], nav li a[aria-current]';
      const line = (e: Element | null) => (e ? getComputedStyle(e).borderBottomColor : "");
      const tab = (selected: boolean) => line(document.querySelector(`[role="tab"][aria-selected="${selected}"]`));
      return {
        moves: document.getAnimations().filter((a) => a.playState === "running").length,
        bare: [...document.querySelectorAll(".trace .bar, .connection i, .presence.here i, .badge")].filter(bare).map((e) => e.className),
        plain: [...document.querySelectorAll(chosen)]
          .filter((e) => e.getBoundingClientRect().width > 0)
          .filter((e) => getComputedStyle(e).outlineStyle === "none")
          .map((e) => e.outerHTML.slice(0, 80)),
        tabs: document.querySelector('[role="tab"]') === null || tab(true) !== tab(false),
        sliders: [...document.querySelectorAll('input[type="range"]')]
          .map((e) => getComputedStyle(e).forcedColorAdjust)
          .filter((a) => a !== "none"),
      };
    });
    expect(found, path).toEqual({ moves: 0, bare: [], plain: [], tabs: true, sliders: [] });
    expect(errors, path).toEqual([]);
    if (process.env["SHOT"]) await page.screenshot({ path: `${process.env["SHOT"]}/forced-${path.replaceAll(/\W+/g, "-")}.png` });
    await page.close();
  }
});

test("at four times the size each room fits the width, and its content is reached", async () => {
  for (const path of rooms) {
    const { page, errors } = await enter(path, { width: 320, height: 256 });
    const found = await page.evaluate(() => {
      const wide = [...document.querySelectorAll("main *")].filter((e) => {
        const style = getComputedStyle(e);
        return (
          e.scrollWidth > e.clientWidth + 1 &&
          e.clientWidth > 0 &&
          /auto|scroll/.test(style.overflowX) &&
          e.matches(".page, .talk, main, .view, .session, .sessions")
        );
      });
      return {
        sideways: document.documentElement.scrollWidth - innerWidth,
        wide: wide.map((e) => `${e.tagName} ${e.className}`),
      };
    });
    expect(found, path).toEqual({ sideways: 0, wide: [] });
    // What the room is about is in a part of the page that can be brought into view as a whole.
    const seen = await page.evaluate(() => {
      const inner = [...document.querySelectorAll<HTMLElement>(".view, .sessions .rows, .page, .start, .inbox")].at(-1) ?? document.body;
      inner.scrollIntoView({ block: "end" });
      const { top, bottom } = inner.getBoundingClientRect();
      return Math.min(bottom, innerHeight) - Math.max(top, 0);
    });
    if (process.env["SHOT"]) await page.screenshot({ path: `${process.env["SHOT"]}/zoom-${path.replaceAll(/\W+/g, "-")}.png` });
    expect(seen, path).toBeGreaterThanOrEqual(100);
    expect(errors, path).toEqual([]);
    await page.close();
  }
});
