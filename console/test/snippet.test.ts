import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Question, WaggleClient } from "@waggle-dev/client";
import { defineAgent } from "@waggle-dev/client/swarm";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { maxWait, up, type Waggle, within } from "../../sdk/typescript/testing/server.ts";
import { callSnippet, type Language, languages, languagesOf, type Sample, snippet } from "../src/fold/snippet.ts";

// Every program that the console shows is run against the real binary.

const here = fileURLToPath(new URL("../../", import.meta.url));

let waggle: Waggle;
let dir: string;

beforeAll(async () => {
  await mkdir(join(here, ".cache"), { recursive: true });
  dir = await mkdtemp(join(here, ".cache/sample-")); // where imports of packages are found, and git sees nothing
  waggle = await up();
});
afterAll(async () => {
  await waggle?.end();
  if (dir) await rm(dir, { recursive: true });
});

const programs: Record<Language, (file: string) => Promise<string>> = {
  curl: (file) => untilAnswer("bash", [file]),
  Python: (file) => output("python3", [file], here),
  Go: (file) => output("go", ["run", file], join(here, "sdk/go")),
  TypeScript: async (file) => {
    const said: string[] = [];
    const log = vi.spyOn(console, "log").mockImplementation((text) => void said.push(String(text)));
    await import(file).finally(() => log.mockRestore());
    return said.join("\n");
  },
};

const names: Record<Language, string> = { curl: "sh", TypeScript: "ts", Python: "py", Go: "go" };

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, WAGGLE_TOKEN: "any", NO_PROXY: "127.0.0.1" };
}

function output(program: string, args: string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, env: environment(), timeout: 2 * maxWait }, (error, out, err) =>
      error ? reject(new Error(`${error.message}: ${err}`)) : resolve(out),
    );
  });
}

/** What a program prints up to the end of a run: it goes on to show events. */
function untilAnswer(program: string, args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const p = spawn(program, args, { env: environment(), detached: true });
    let out = "";
    const end = (): void => {
      clearTimeout(timer);
      if (p.pid) process.kill(-p.pid);
    };
    const timer = setTimeout(() => {
      end();
      reject(new Error(`no end: ${out}`));
    }, maxWait);
    p.stdout.on("data", (b) => {
      out += b;
      if (!out.includes("event: run.completed")) return;
      end();
      resolve(out);
    });
    p.on("exit", (code) => {
      clearTimeout(timer);
      if (code) reject(new Error(`exit ${code}: ${out}`));
    });
  });
}

async function run(language: Language, sample: Sample): Promise<string> {
  const file = join(dir, `${crypto.randomUUID()}.${names[language]}`);
  await writeFile(file, snippet(language, sample));
  return programs[language](file);
}

async function api<T>(path: string, body?: unknown): Promise<T> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const r = await fetch(`${waggle.url}/api/v1/${path}`, init);
  expect(r.ok, `${path}: ${r.status}`).toBe(true);
  return (await r.json()) as T;
}

/** Approves the plan of a session, as soon as it is asked for. */
async function approve(id: string): Promise<void> {
  const client = new WaggleClient({ url: waggle.url });
  const session = client.session(id);
  const asked = new Promise<Question>((go) => session.onQuestions((open) => open[0] && go(open[0])));
  await session.answer(await within(asked, "the question"), true);
  client.close();
}

test.each(languages)("a question in %s is answered", async (language) => {
  const out = await run(language, {
    origin: waggle.url,
    message: { content: "What is 128 * 46?", mode: "chat", confirm: true },
    login: false,
  });
  expect(out).toContain("5888");
});

const toAgent = { content: "It's a 'quoted' $word", mode: "chat", confirm: true, agent: "shout-it" } as const;

test.each(languagesOf(toAgent))("a message to an agent of the swarm in %s has its answer", async (language) => {
  const agent = await defineAgent<{ content: string }>({ name: toAgent.agent, run: (task) => task.data.content.toUpperCase() }).serve({
    url: waggle.url,
  });
  try {
    const out = await run(language, { origin: waggle.url, message: toAgent, login: false });
    expect(out).toContain("IT'S A 'QUOTED' $WORD");
  } finally {
    await agent.stop();
  }
});

test("a call of a tool with curl has its outcome, whatever the arguments are", async () => {
  const call = { origin: waggle.url, login: true, provider: "workspace", tool: "write_file", kind: "mcp" };
  const content = `it's "$HOME" \\ \`x\` \n名`;
  const file = join(dir, "call.sh");
  await writeFile(file, callSnippet({ ...call, arguments: { path: "call.md", content } }));
  expect(JSON.parse(await output("bash", [file], dir))).toMatchObject({ status: "success", tool: "write_file" });
  await writeFile(file, callSnippet({ ...call, tool: "read_file", arguments: { path: "call.md" } }));
  const { result } = JSON.parse(await output("bash", [file], dir)) as { result: [{ text: string }] };
  expect(result[0].text).toContain(content);
});

const hostile = `What is 6 * 7? It's "quoted" in \\n 'all' \`ways\` $HOME \${x} $(id) %s {0} 😀 日本 </script>
and goes on`;

test.each(languages)("a plan in %s goes on in its session, and says what was written", async (language) => {
  const { session_id: session } = await api<{ session_id: string }>("sessions", {});
  const sample: Sample = { origin: waggle.url, session, message: { content: hostile, mode: "plan", confirm: true }, login: true };
  const byHand = language === "curl" || language === "Python";
  const [out] = await Promise.all([run(language, sample), byHand && approve(session)]);
  expect(out).toContain("42");
  const { events } = await api<{ events: { type: string; data: Record<string, unknown> }[] }>(`sessions/${session}/events`);
  expect(events.find((e) => e.type === "message.received")?.data["content"]).toBe(hostile);
  if (language !== "Go") expect(events.filter((e) => e.type === "input.answered")).toHaveLength(1);
});
