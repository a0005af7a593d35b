import { type Message, messageBody } from "./message.ts";

/** The languages in which a request can be copied. */
export const languages = ["curl", "TypeScript", "Python", "Go"] as const;
export type Language = (typeof languages)[number];

/** The languages that have a sample of the message: the Go client has no word for the agent that answers. */
export function languagesOf(m: Message): readonly Language[] {
  return m.mode === "chat" && m.agent ? languages.filter((l) => l !== "Go") : languages;
}

/** A message as the playground sends it. */
export interface Sample {
  message: Message;
  /** Of the installation, such as `http://127.0.0.1:9000`. */
  origin: string;
  /** The session that goes on; none = a new one. */
  session?: string | undefined;
  /** Whether the installation asks who this is. The token itself is in no sample. */
  login: boolean;
}

/** A program that sends the message, and shows what comes of it. */
export function snippet(language: Language, sample: Sample): string {
  const message = { ...sample.message, content: sample.message.content.toWellFormed() };
  return writers[language]({ ...sample, message });
}

const writers: Record<Language, (s: Sample) => string> = { curl, TypeScript: typescript, Python: python, Go: go };

const loginOf = (login: boolean) => (login ? ` -H "Authorization: Bearer $WAGGLE_TOKEN"` : "");

/** A text as one word of a shell. */
const quoted = (text: string) => `'${text.toWellFormed().replaceAll("'", `'\\''`)}'`;

/** A call of a tool of a provider. */
export interface ToolSample {
  origin: string;
  login: boolean;
  provider: string;
  tool: string;
  kind: string;
  arguments: unknown;
}

/** The command that makes the call, and waits for its outcome. */
export function callSnippet(s: ToolSample): string {
  const path = `${encodeURIComponent(s.provider)}/${encodeURIComponent(s.tool)}`;
  return `curl -sS --fail-with-body${loginOf(s.login)} ${quoted(`${s.origin}/api/v1/tools/${path}/call?wait=50`)} \\
  -H 'Content-Type: application/json' -d ${quoted(JSON.stringify({ kind: s.kind, arguments: s.arguments }))}
`;
}

function curl(s: Sample): string {
  const login = loginOf(s.login);
  const session = s.session
    ? `SESSION=${s.session}`
    : `SESSION=$(curl -fsS${login} -X POST "$API" | sed 's/.*"session_id":"\\([^"]*\\)".*/\\1/')`;
  return `API=${s.origin}/api/v1/sessions
${session}
curl -fsS${login} "$API/$SESSION/messages" \\
  -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(messageBody(s.message)))}
curl -fsSN${login} "$API/$SESSION/stream" -H 'Accept: text/event-stream' # every event, as it happens
`;
}

function typescript(s: Sample): string {
  const { content, mode, confirm, agent } = s.message;
  const token = s.login ? ", token: process.env.WAGGLE_TOKEN" : "";
  const options = mode === "plan" ? `, { mode: "plan", confirmPlan: ${confirm} }` : agent ? `, { agent: ${JSON.stringify(agent)} }` : "";
  const approve =
    mode === "plan" && confirm ? "session.onQuestions(([first]) => first && session.answer(first, true).catch(console.error));\n" : "";
  return `import { WaggleClient } from "@waggle-dev/client";

const client = new WaggleClient({ url: ${JSON.stringify(s.origin)}${token} });
const session = client.session(${s.session ? JSON.stringify(s.session) : ""});
const run = session.send(${JSON.stringify(content)}${options});
${approve}console.log((await run.result()).text);
client.close();
`;
}

function python(s: Sample): string {
  const { content, mode, confirm, agent } = s.message;
  const login = s.login ? `, "Authorization": "Bearer " + os.environ["WAGGLE_TOKEN"]` : "";
  const literal = JSON.stringify(content);
  const plan =
    mode === "plan"
      ? `, "mode": "plan", "confirm_plan": ${confirm ? "True" : "False"}`
      : agent
        ? `, "agent": ${JSON.stringify(agent)}`
        : "";
  return `import json
${s.login ? "import os\n" : ""}import urllib.request

API = ${JSON.stringify(`${s.origin}/api/v1/sessions`)}


def request(path, body=None, accept="application/json"):
    headers = {"Content-Type": "application/json", "Accept": accept${login}}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(API + path, data, headers))


session = ${s.session ? JSON.stringify(s.session) : `json.load(request("", {}))["session_id"]`}
run = json.load(request(f"/{session}/messages", {"content": ${literal}${plan}}))
for line in request(f"/{session}/stream?after={run['seq'] - 1}", accept="text/event-stream"):
    if not line.startswith(b"data: {"):
        continue
    event = json.loads(line[6:])
    if event["data"].get("run_id") != run["run_id"]:
        continue
    if event["type"] == "input.requested":
        print(${JSON.stringify(`waits for an answer at ${s.origin}/questions`)})
    if event["type"] == "run.completed":
        print(event["data"]["content"])
    if event["type"] in ("run.completed", "run.failed", "run.cancelled"):
        break
`;
}

function go(s: Sample): string {
  const { content, mode, confirm } = s.message;
  const token = s.login ? `Token: os.Getenv("WAGGLE_TOKEN")` : "";
  const kind = mode === "plan" ? "Plan" : "Chat";
  // A session asks about its plans, or not, from its first message on.
  const asks = mode === "plan" ? `ConfirmPlan: new(${confirm})` : "";
  const field = s.session ? `ID: ${JSON.stringify(s.session)}` : asks;
  const decide = mode === "plan" && confirm ? "func(waggle.Question) waggle.Reply { return waggle.Reply{Approve: true} }" : "nil";
  return `package main

import (
	"context"
	"fmt"
	"log"
${s.login ? `	"os"\n` : ""}
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

func main() {
	ctx := context.Background()
	client, err := waggle.Open(ctx, ${JSON.stringify(s.origin.replace(/^http/, "ws"))}, waggle.Options{${token}})
	if err != nil {
		log.Fatal(err)
	}
	session := client.${kind}(waggle.SessionOptions{${field}})
	defer session.Close()
	answer, err := session.Ask(ctx, ${JSON.stringify(content)}, ${decide})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text)
}
`;
}
