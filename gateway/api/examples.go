package api

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
)

// groups are the tags of the document.
var groups = []openapi.Tag{
	{Name: "sessions", About: "Conversations: messages, runs and their steps, states."},
	{Name: "questions", About: "Questions to people: approvals of tools, plans and budgets, questions of agents."},
	{Name: "teams", About: "Teams of agents, with messages to their members."},
	{Name: "tasks", About: "Tasks of the swarm."},
	{Name: "swarm", About: "Agents, services, clients and MCP servers, and calls of their tools."},
	{Name: "events", About: "Logs and streams of what happens, and the files that logs name."},
	{Name: "installation", About: "The installation and its operation."},
	{Name: "system", About: "The principal, the console, schemas and this document."},
}

// examples are bodies of requests, by the id of the operation.
var examples = map[string]json.RawMessage{
	"nameSession":    json.RawMessage(`{"confirm_plan":true,"language":"en"}`),
	"messageSession": json.RawMessage(`{"id":"first","content":"which files are in the workspace, and what does notes.md say?","mode":"plan"}`),
	"importSession":  json.RawMessage(`{"signed":"the answer of exportSession"}`),
	"cancelStep":     json.RawMessage(`{"reason":"not needed any more"}`),
	"restartStep":    json.RawMessage(`{"reason":"the disk was full","max_attempts":3}`),
	"cancelPlan":     json.RawMessage(`{"reason":"not needed any more"}`),
	"replanSession":  json.RawMessage(`{"question":"what does notes.md say?"}`),
	"answerQuestion": json.RawMessage(`{"decision":"approve","feedback":"go on"}`),
	"createTask":     json.RawMessage(`{"id":"t1","agent_name":"shouter","data":{"text":"hello"},"timeout_ms":60000}`),
	"messageTask":    json.RawMessage(`{"id":"m1","message":{"text":"and louder"}}`),
	"cancelTask":     json.RawMessage(`{"reason":"not needed any more"}`),
	"retryTask":      json.RawMessage(`{"id":"again-1"}`),
	"createTeam":     json.RawMessage(`{"name":"site","coordinator":"Boss","members":[{"name":"Boss"},{"name":"Coder","role":"writes the pages"}]}`),
	"messageTeam":    json.RawMessage(`{"id":"m1","content":"write the landing page","target":"Coder"}`),
	"stopTeam":       json.RawMessage(`{"reason":"user_request"}`),
	"callTool":       json.RawMessage(`{"id":"c1","kind":"service","arguments":{"path":"notes.md"},"timeout_ms":10000}`),
	"reindex":        json.RawMessage(`{"kind":"session"}`),
}
