import { type CanonicalEvent, type Logger, WaggleClient } from "@waggle-dev/client";
import { UnreachableError } from "@waggle-dev/client/errors";
import { sessionStore } from "@waggle-dev/client/store";
import { useSession as useInSvelte } from "@waggle-dev/client/svelte";
import { ViewBuilder, type ViewItem } from "@waggle-dev/client/view";
import { useSession as useInVue } from "@waggle-dev/client/vue";
import { get } from "svelte/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSSRApp, defineComponent, effectScope, h, watch } from "vue";
import { renderToString } from "vue/server-renderer";
import { freePort, up, type Waggle, within } from "../../testing/server.js";
import { svelteModule } from "../../testing/svelte.js";

let waggle: Waggle;
let client: WaggleClient;

beforeAll(async () => {
  waggle = await up();
  client = new WaggleClient({ url: waggle.url });
});
afterAll(async () => {
  client.close();
  await waggle.end();
});

const users = (items: readonly ViewItem[]) =>
  items.flatMap((i) => (i.kind === "user" ? [{ text: i.text, pending: i.pending ?? false }] : []));

/** Watches a value until it fits. */
function until<T>(subscribe: (listener: (value: T) => void) => void, fits: (value: T) => boolean): Promise<void> {
  return within(new Promise<void>((go) => subscribe((value) => fits(value) && go())), "a view that fits");
}

test("a message that is sent is shown as pending until the log has it", () => {
  const b = new ViewBuilder();
  const received = (id: string) =>
    ({ type: "message.received", sequence: 1, data: { message_id: id, run_id: "r", content: "hello" } }) as unknown as CanonicalEvent;
  b.send("mine", "hello");
  b.send("other", "hi");
  expect(users(b.view.items)).toEqual([
    { text: "hello", pending: true },
    { text: "hi", pending: true },
  ]);
  b.take(received("mine"));
  expect(users(b.view.items)).toEqual([
    { text: "hello", pending: false },
    { text: "hi", pending: true },
  ]);
  b.send("mine", "hello"); // sent again: the log has it
  b.drop("other");
  expect(users(b.view.items)).toEqual([{ text: "hello", pending: false }]);
});

test("useSession of Vue shows a message at once, then its answer, and ends with its scope", async () => {
  const scope = effectScope();
  const used = scope.run(() => useInVue(client)) as ReturnType<typeof useInVue>;
  const seen: { text: string; pending: boolean }[][] = [];
  const answered = until<readonly ViewItem[]>(
    (tell) =>
      scope.run(() =>
        watch(used.view, (v) => {
          seen.push(users(v.items));
          tell(v.items);
        }),
      ),
    (items) => items.some((i) => i.kind === "answer" && i.done && i.text.includes("buy milk")),
  );
  const run = used.send("what does notes.md say?");
  await run.result();
  await answered;
  expect(users(used.view.value.items)).toEqual([{ text: "what does notes.md say?", pending: false }]);
  expect(seen.every((s) => s.length <= 1)).toBe(true);
  expect(used.connection.value.connected).toBe(true);
  const session = used.session();
  scope.stop();
  await within(new Promise<void>((go) => session.signal.addEventListener("abort", () => go())), "the end of the session");
});

test("a message waits in the view while the server is away, and leaves when it is refused", async () => {
  let answer: () => Promise<Response> = () => Promise.reject(new TypeError("no connection"));
  const away = new WaggleClient({ url: "http://127.0.0.1:1", fetch: () => answer(), backoff: { min: 1, max: 2 } });
  const store = sessionStore(away, "s1", true);
  const shown = (wanted: boolean) =>
    until<void>(
      (tell) => store.subscribe(tell as () => void),
      () => users(store.snapshot().view.items).some((u) => u.pending) === wanted,
    );
  const waiting = shown(true);
  const run = store.send("hello");
  await waiting;
  const gone = shown(false);
  const problem = { title: "QUEUE_FULL", detail: "Too many messages wait.", status: 409 };
  answer = async () => new Response(JSON.stringify(problem), { status: 409, headers: { "Content-Type": "application/problem+json" } });
  await expect(run.accepted()).rejects.toMatchObject({ code: "QUEUE_FULL" });
  await gone;
  expect(store.snapshot().view.items).toEqual([]);
  away.close();
});

/** A client that counts its requests. */
function counting(): { client: WaggleClient; requests: () => number } {
  let requests = 0;
  const refuse = () => {
    requests++;
    return Promise.reject(new TypeError("no connection"));
  };
  return { client: new WaggleClient({ url: "http://127.0.0.1:1", fetch: refuse }), requests: () => requests };
}

test("a page that a server renders with Vue makes no connection", async () => {
  const { client, requests } = counting();
  const page = defineComponent(() => {
    const { view } = useInVue(client, "s1");
    return () => h("p", `${view.value.items.length} items`);
  });
  expect(await renderToString(createSSRApp(page))).toBe("<p>0 items</p>");
  expect(requests()).toBe(0);
  client.close();
});

test("a page that a server renders with Svelte makes no connection", async () => {
  const { client, requests } = counting();
  const page = await svelteModule(
    `<script>
      import { useSession } from "@waggle-dev/client/svelte";
      let { client } = $props();
      const { view } = useSession(client, "s1");
    </script>
    <p>{$view.items.length} items</p>`,
    "server",
  );
  const file = new URL(`data:text/javascript,${encodeURIComponent(page)}`);
  const { component, render } = await import(/* @vite-ignore */ file.href);
  expect((await render(component, { props: { client } })).body).toContain("<p>0 items</p>");
  expect(requests()).toBe(0);
  client.close();
});

test("useSession of Svelte shows a session while a component subscribes", async () => {
  const { id, send, view, connection, session } = useInSvelte(client);
  let leave = () => {};
  const answered = until<readonly ViewItem[]>(
    (tell) => (leave = view.subscribe((v) => tell(v.items))),
    (items) => items.some((i) => i.kind === "answer" && i.done && i.text.includes("buy milk")),
  );
  await send("what does notes.md say?").result();
  await answered;
  expect(get(connection).connected).toBe(true);
  expect(session().id).toBe(id);
  expect(users(get(view).items)).toEqual([{ text: "what does notes.md say?", pending: false }]);
  const shown = session();
  leave();
  await within(new Promise<void>((go) => shown.signal.addEventListener("abort", () => go())), "the end of the session");
});

test("a logger is told of repeats, and a call ends with its time-out or signal", async () => {
  const told: string[] = [];
  const logger: Logger = { info: (m) => told.push(m), warn: (m) => told.push(m) };
  const url = `http://127.0.0.1:${await freePort()}`;
  const away = new WaggleClient({ url, token: "secret-key", logger, backoff: { min: 1, max: 2 } });
  const session = away.session();
  const run = session.send("hello");
  await expect(run.result({ timeoutMs: 50 })).rejects.toMatchObject({ name: "TimeoutError" });
  await expect(run.result({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
  await expect(run.cancel("late", { timeoutMs: 50 })).rejects.toMatchObject({ name: "TimeoutError" });
  await expect(away.task("t").result({ timeoutMs: 50 })).rejects.toMatchObject({ name: "TimeoutError" });
  await expect(away.log("session", "s").head({ timeoutMs: 50 })).rejects.toMatchObject({ name: "TimeoutError" });
  await expect(away.call("GET", "/api/v1/me")).rejects.toBeInstanceOf(UnreachableError);
  expect(told.join("\n")).toMatch(/repeated in \d+ ms/);
  expect(told.join("\n")).not.toContain("secret-key");
  away.close();
});
