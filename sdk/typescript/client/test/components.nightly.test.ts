import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, Site } from "../../testing/browser.js";
import { freePort, Line, up, type Waggle } from "../../testing/server.js";
import { sources } from "../../testing/sources.js";
import { svelteModule } from "../../testing/svelte.js";

let waggle: Waggle;
let line: Line;
let site: Site;
let browser: Browser;

const begin = `
  import { WaggleClient } from "@waggle-dev/client";
  const query = new URLSearchParams(location.search);
  const client = new WaggleClient({ url: query.get("url"), backoff: { min: 5, max: 50 } });
  const id = query.get("session");`;

/** A chat with a component of Vue. */
const vue = `
  import { createApp, defineComponent, h, ref } from "vue";
  import { useSession } from "@waggle-dev/client/vue";
  ${begin}
  const chat = defineComponent(() => {
    const { view, send, answer } = useSession(client, id);
    const text = ref("");
    const say = (o) => () => send(text.value, o);
    return () => [
      h("input", { id: "text", value: text.value, onInput: (e) => (text.value = e.target.value) }),
      h("button", { id: "chat", onClick: say() }),
      h("button", { id: "plan", onClick: say({ mode: "plan", confirmPlan: true }) }),
      view.value.items.map((i) => h("p", { class: i.kind, "data-pending": i.pending }, i.text)),
      view.value.questions.map((q) => h("button", { class: "question", onClick: () => answer(q, true) }, q.text)),
    ];
  });
  createApp(chat).mount("#root");`;

/** The same with a component of Svelte. */
const svelte = `
  <script>
    import { useSession } from "@waggle-dev/client/svelte";
    ${begin}
    const { view, send, answer } = useSession(client, id);
    let text = $state("");
  </script>
  <input id="text" bind:value={text} />
  <button id="chat" onclick={() => send(text)}>chat</button>
  <button id="plan" onclick={() => send(text, { mode: "plan", confirmPlan: true })}>plan</button>
  {#each $view.items as i (i.kind + i.id)}<p class={i.kind} data-pending={i.pending}>{i.text}</p>{/each}
  {#each $view.questions as q (q.id)}<button class="question" onclick={() => answer(q, true)}>{q.text}</button>{/each}`;

async function vueModule(): Promise<string> {
  const bundle = await build({
    stdin: { contents: vue, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    bundle: true,
    format: "esm",
    platform: "browser",
    define: { "process.env.NODE_ENV": '"development"' },
    alias: sources,
    write: false,
  });
  return bundle.outputFiles[0]?.text ?? "";
}

beforeAll(async () => {
  const page = (script: string) => `<!doctype html><title>chat</title><div id="root"></div><script type="module">${script}</script>`;
  const texts = {
    "/vue/": page('import "./page.js"'),
    "/vue/page.js": await vueModule(),
    "/svelte/": page('import { component, mount } from "./page.js"; mount(component, { target: document.getElementById("root") })'),
    "/svelte/page.js": await svelteModule(svelte, "client"),
  };
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

test.each(["vue", "svelte"])("a component of %s shows a chat and a plan, and resumes after a cut line and a reload", async (name) => {
  const { page, errors } = await open(browser, `${site.origin}/${name}/?url=${encodeURIComponent(line.url)}&session=in-${name}`);
  const answers = (count: number) => page.waitForFunction((n) => document.querySelectorAll(".answer").length >= n, count);
  await page.context().setOffline(true);
  await page.fill("#text", "what does notes.md say?");
  await page.click("#chat");
  await page.waitForSelector(".user[data-pending]");
  await page.context().setOffline(false);
  await page.waitForFunction(() => document.querySelector(".answer")?.textContent?.includes("buy milk"));
  expect(await page.locator(".user").count()).toBe(1);
  expect(await page.locator(".user[data-pending]").count()).toBe(0);
  line.cut();
  await page.fill("#text", "which files are in the workspace, and what does notes.md say?");
  await page.click("#plan");
  await page.waitForSelector(".question");
  await page.reload();
  await page.click(".question");
  await answers(2);
  await page.waitForFunction(() => !document.querySelector(".question"));
  expect(await page.locator(".user").count()).toBe(2);
  expect(errors).toEqual([]);
});
