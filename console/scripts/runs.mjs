// Runs of each kind for pictures and measurements of the console, made over the HTTP API.
import { defineAgent } from "@waggle-dev/client/swarm";
import { url } from "./demo.mjs";

async function api(method, path, body) {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    ...(body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** Waits until something that the API says is as wanted, and returns that. */
async function until(read) {
  for (;;) {
    const found = await read();
    if (found) return found;
    await new Promise((go) => setTimeout(go, 100));
  }
}

const question = (fits) => until(async () => (await api("GET", "/questions")).questions.find(fits));
const approve = (q) => api("POST", `/questions/${encodeURIComponent(q.id)}/answer`, { decision: "approve", digest: q.digest });
const ofSession = (id, scope) => question((q) => JSON.stringify(q).includes(id) && q.scope === scope);

/** Starts a session with a message. */
async function ask(content, mode = "chat") {
  const { session_id: id } = await api("POST", "/sessions", {});
  await api("POST", `/sessions/${id}/messages`, { content, mode, confirm_plan: mode === "plan" });
  return id;
}

const over = (id) => until(async () => (await api("GET", `/sessions/${id}`)).state !== "running");

/** Fills the installation with runs of each kind. Returns the ids of those that pictures are of, and how to stop the agents. */
export async function fill() {
  const files = await ask("Which files are in the workspace, and what does notes.md say?");
  await over(files);
  const again = await ask("Which files are in the workspace? What is 17 * 23?");
  await over(again);
  const planned = await ask("Which files are in the workspace? What does notes.md say? Write hello to hello.md", "plan");
  await approve(await ofSession(planned, "plan"));
  await approve(await ofSession(planned, "tool"));
  await over(planned);
  const cancelled = await ask("How do bees tell each other where the flowers are?");
  await api("POST", `/sessions/${cancelled}/cancel`).catch(() => {});
  await ask("What does missing.md say?").then(over);
  const agents = [
    defineAgent({
      name: "coder",
      capabilities: ["go", "tests"],
      description: "Writes Go, and runs its tests.",
      run: () => "All 42 tests pass.",
    }),
    defineAgent({
      name: "researcher",
      capabilities: ["search"],
      description: "Reads papers.",
      run: () => {
        throw new Error("the library is closed");
      },
    }),
  ];
  const served = await Promise.all(agents.map((a) => a.serve({ url })));
  const { session_id: failed } = await api("POST", "/sessions", {});
  await api("POST", `/sessions/${failed}/messages`, { content: "How do bees dance?", agent: "researcher" });
  await over(failed);
  const writes = await ask("Write buy milk to shopping.md, and then read it");
  await ofSession(writes, "tool");
  const waiting = await ask("Which files are in the workspace? How many words does notes.md have? What is 128 * 46?", "plan");
  await ofSession(waiting, "plan");
  const { team_id: team } = await api("POST", "/teams", {
    name: "pair",
    coordinator: "Lead",
    members: [
      { name: "Lead", role: "talks to people and gives the work to Writer" },
      { name: "Writer", role: "writes files", tools: ["workspace/*"] },
    ],
  });
  await api("POST", `/teams/${team}/messages`, { content: "Ask Writer to write hello to hello.md" });
  await ofSession(team, "tool");
  const { task_id: task } = await api("POST", "/tasks", { agent_name: "coder", data: { repository: "waggle", run: "go test ./..." } });
  await until(async () => (await api("GET", `/tasks/${task}`)).status === "completed");
  return { files, again, planned, waiting, failed, team, task, stop: () => Promise.all(served.map((a) => a.stop())) };
}
