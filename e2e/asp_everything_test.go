package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
)

func decodeMember(f client.SwarmFrame, name string, into any) error {
	return json.Unmarshal(f.Member(name), into)
}

// TestATaskWithEverything: a client gives a task to an agent, which calls a service,
// which notifies; runs a tool of the workspace and one
// of an MCP server of another author; asks the client; gives a part to another agent; and
// has the result. testdata/asp holds the frames of each party.
func TestATaskWithEverything(t *testing.T) {
	t.Parallel()
	installed := packages(t, "mcp")
	program, err := json.Marshal([]string{filepath.Join(installed, "node_modules", ".bin", "mcp-server-everything")})
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "waggle.yaml")
	require.NoError(t, os.WriteFile(config, []byte("tools: {servers: [{name: everything, command: "+string(program)+", approval: never, paths: {read: ["+installed+"]}}]}\n"), 0o600))
	dir, addr := up(t, []string{"WAGGLE_ASSISTANT_ENABLED=false", "WAGGLE_CONFIG=" + config})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workspace", "text.txt"), []byte("hello world"), 0o600))
	h := swarmRig{t: t, addr: addr}
	service := h.service("llm-service-001", "LLM Service", nil, object{
		"id": "generate_text", "name": "Text Generation",
		"inputSchema":  object{"type": "object", "required": []string{"prompt"}, "properties": object{"prompt": object{"type": "string"}}},
		"outputSchema": object{"type": "object", "required": []string{"text"}, "properties": object{"text": object{"type": "string"}}},
	})
	writer := h.agent("agent-001", "Text Processing Agent", nil, "text-processing")
	analyst := h.agent("agent-002", "Data Analysis Agent", nil, "analysis")
	client := h.client()
	h.serves("everything")
	play := wholeTask{t: t, client: client, writer: writer, analyst: analyst, service: service}
	play.begin()
	play.callService()
	play.runTool()
	play.askClient()
	play.askAgent()
	play.end()
	transcribed(t, filepath.Join("testdata", "asp", "everything.txtar"), verify.SwarmTranscript(
		verify.Part{Name: "client", Conn: client}, verify.Part{Name: "agent", Conn: writer},
		verify.Part{Name: "child agent", Conn: analyst}, verify.Part{Name: "service", Conn: service},
	))
}

// serves waits until an MCP server has started.
func (h swarmRig) serves(server string) {
	h.t.Helper()
	c := h.client()
	defer c.Drop()
	process.Eventually(h.t, "the MCP server has started", func() bool {
		list := c.Get("client.mcp.server.list.response", "client.mcp.server.list.request", object{"filters": object{"status": "active"}})
		return strings.Contains(string(list.Content), `"id":"`+server+`"`)
	})
}

// wholeTask is a task and those who take part in it.
type wholeTask struct {
	t                                *testing.T
	client, writer, analyst, service *client.Swarm
	task, request                    string
}

func (p *wholeTask) begin() {
	list := p.client.Get("client.agent.list.response", "client.agent.list.request", object{"filters": object{"capabilities": []string{"text-processing"}}})
	require.NotContains(p.t, string(list.Content), "agent-002")
	p.request = p.client.Say("client.agent.task.create.request", object{
		"agentId": "agent-001", "agentName": "Text Processing Agent", "taskData": object{"text": "hello world", "operation": "uppercase"},
	})
	task := p.writer.Until("task.execute")
	p.task = task.Text("taskId")
	require.Equal(p.t, p.task, task.ID)
	p.writer.Say("task.status", object{"taskId": p.task, "status": "started"})
	p.writer.Get("task.message.received", "task.notification", object{"taskId": p.task, "notificationType": "progress", "message": "reading", "data": object{"percent": 10}})
}

func (p *wholeTask) callService() {
	call := p.writer.Say("service.task.execute", object{
		"serviceId": "llm-service-001", "toolId": "generate_text", "params": object{"prompt": "say it louder"}, "taskId": p.task,
	})
	run := p.service.Until("service.task.execute")
	require.JSONEq(p.t, `{"prompt":"say it louder"}`, string(run.Member("params")))
	p.service.Get("notification.received", "service.task.notification", object{
		"serviceId": "llm-service-001", "taskId": run.ID,
		"notification": object{"type": "progress", "message": "Generating", "timestamp": "2023-12-01T10:00:07.000Z", "data": object{"progress": 50}},
	})
	p.service.Say("service.task.result", object{"serviceId": "llm-service-001", "taskId": run.ID, "result": object{"text": "HELLO WORLD"}})
	p.writer.Until("service.notification")
	answer := p.writer.Until("service.task.execute.response")
	require.Equal(p.t, call, answer.RequestID)
	require.JSONEq(p.t, `{"text":"HELLO WORLD"}`, string(answer.Member("result")))
}

func (p *wholeTask) runTool() {
	answer := p.writer.Get("mcp.tool.execute.result", "mcp.tool.execute", object{
		"serverId": "workspace", "toolName": "read_file", "parameters": object{"path": "text.txt"}, "taskId": p.task,
	})
	require.Contains(p.t, string(answer.Member("result")), "hello world")
	answer = p.writer.Get("mcp.tool.execute.result", "mcp.tool.execute", object{
		"serverId": "everything", "toolName": "echo", "parameters": object{"message": "hello world"}, "taskId": p.task,
	})
	require.Contains(p.t, string(answer.Member("result")), "Echo: hello world")
}

func (p *wholeTask) askClient() {
	ask := p.writer.Say("task.requestmessage", object{
		"taskId": p.task, "messageType": "input_request", "message": "Which language?", "options": []string{"spanish", "french"}, "timeout": 60000,
	})
	question := p.client.Until("task.requestmessage")
	require.JSONEq(p.t, `"Which language?"`, string(question.Member("message")))
	p.client.Get("task.message.sent", "task.message", object{"taskId": p.task, "messageType": "input_response", "message": object{"language": "spanish"}})
	answer := p.writer.Until("task.messageresponse")
	require.Equal(p.t, ask, answer.RequestID)
	require.JSONEq(p.t, `{"language":"spanish"}`, string(answer.Member("message")))
}

func (p *wholeTask) askAgent() {
	p.writer.Say("agent.request", object{
		"targetAgent": "Data Analysis Agent", "taskData": object{"type": "data_analysis", "text": "HELLO WORLD"}, "parentTaskId": p.task,
	})
	p.writer.Until("childagent.request.accepted")
	child := p.analyst.Until("task.execute")
	require.NotEqual(p.t, p.task, child.ID)
	p.analyst.Get("task.message.received", "task.notification", object{"taskId": child.ID, "notificationType": "info", "message": "looking"})
	p.analyst.Say("agent.task.result", object{"taskId": child.ID, "result": object{"sentiment": "positive"}})
	back := p.writer.Until("childagent.response")
	require.JSONEq(p.t, `{"sentiment":"positive"}`, string(back.Member("result")))
	p.client.Until("task.childtask.status")
}

func (p *wholeTask) end() {
	p.writer.Say("agent.task.result", object{"taskId": p.task, "result": object{"processedText": "HELLO WORLD", "sentiment": "positive"}})
	end := p.client.Until("client.agent.task.result")
	require.Equal(p.t, p.request, end.RequestID)
	require.Equal(p.t, "completed", end.Text("status"))
	process.Eventually(p.t, "the result comes once more", func() bool { return len(p.client.Again()) == 1 })
	seqs := map[uint64]int{}
	var last uint64
	for _, f := range p.client.Frames() {
		if f.Seq > 0 {
			seqs[f.Seq]++
			require.Greater(p.t, f.Seq, last, "in order")
			last = f.Seq
		}
	}
	for seq, n := range seqs {
		require.Equal(p.t, 1, n, "event %d", seq)
	}
	require.NotContains(p.t, strings.Join(p.client.Types(), " "), "error")
}
