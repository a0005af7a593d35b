package e2e_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
)

// longText is a text of so many bytes, with what programs escape at its end.
func longText(letter string, n int) string {
	const end = "<&>\"\u2028ä"
	return strings.Repeat(letter, n-len(end)) + end
}

// textOf is a member of a frame, or a member of that, that is a text.
func textOf(t *testing.T, f client.SwarmFrame, name string) (text string) {
	t.Helper()
	outer, inner, nested := strings.Cut(name, ".")
	raw := f.Member(outer)
	if nested {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &m))
		raw = m[inner]
	}
	require.NoError(t, json.Unmarshal(raw, &text))
	return text
}

// TestLargeData: data and result of a task that fit into no event reach agent and client
// whole, also one that comes back, any reader of the task, and the command line. testdata/asp
// holds the frames of each party.
func TestLargeData(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	h := p.swarm()
	c := h.client()
	play := largeTask{t: t, client: c, agent: h.agent("agent-001", "Reader", nil)}
	play.begin("agent-001", 300<<10)
	play.end(300 << 10)
	shown := c.Get("client.agent.task.status.response", "client.agent.task.status.request", object{"taskId": play.task})
	require.Equal(t, longText("r", 300<<10), textOf(t, shown, "result"))
	transcribed(t, filepath.Join("testdata", "asp", "large.txtar"), verify.SwarmTranscript(
		verify.Part{Name: "client", Conn: c}, verify.Part{Name: "agent", Conn: play.agent},
	))

	hello := c.Find("the welcome", func(f client.SwarmFrame) bool { return f.Type == "orchestrator.client.welcome" })
	back := client.DialSwarm(t, client.SwarmOptions{
		Role: proof.RoleClient, Addr: p.addr, Key: p.key, Query: "after=1&clientId=" + hello.Text("clientId") + "&resumeToken=" + hello.Text("resumeToken"),
	})
	require.Equal(t, longText("r", 300<<10), textOf(t, back.Until("client.agent.task.result"), "result"))

	var task struct {
		Result string          `json:"result"`
		Ref    json.RawMessage `json:"result_ref"`
		Task   struct {
			Data struct {
				Text string `json:"text"`
			} `json:"data"`
		} `json:"task"`
	}
	_, body, _ := strings.Cut(over(t, http.MethodGet, p.url("/api/v1/tasks/"+play.task), p.key), " ")
	require.NoError(t, json.Unmarshal([]byte(body), &task))
	require.Equal(t, []bool{true, true, true}, []bool{longText("r", 300<<10) == task.Result, longText("d", 300<<10) == task.Task.Data.Text, task.Ref == nil})
	require.Contains(t, p.waggle("tasks", "show", play.task, "--json"), strings.Repeat("r", 250<<10))
}

// largeTask is a task with much data, and those who take part in it.
type largeTask struct {
	t                      *testing.T
	client, agent, service *client.Swarm
	ask                    object // for an agent, unless it is named
	task, request          string
}

func (p *largeTask) begin(agentID string, n int) {
	p.t.Helper()
	content := object{"taskData": object{"text": longText("d", n)}}
	for k, v := range p.ask {
		content[k] = v
	}
	if agentID != "" {
		content["agentId"] = agentID
	}
	p.request = p.client.Say("client.agent.task.create.request", content)
	task := p.agent.Until("task.execute")
	p.task = task.Text("taskId")
	require.Equal(p.t, longText("d", n), textOf(p.t, task, "data.text"))
	p.agent.Say("task.status", object{"taskId": p.task, "status": "started"})
}

func (p *largeTask) callService(args, result int) {
	p.t.Helper()
	call := p.agent.Say("service.task.execute", object{
		"serviceId": "llm-service-001", "toolId": "generate_text", "params": object{"prompt": longText("p", args)}, "taskId": p.task,
	})
	run := p.service.Until("service.task.execute")
	require.Equal(p.t, longText("p", args), textOf(p.t, run, "params.prompt"))
	p.service.Say("service.task.result", object{"serviceId": "llm-service-001", "taskId": run.ID, "result": object{"text": longText("s", result)}})
	answer := p.agent.Until("service.task.execute.response")
	require.Equal(p.t, call, answer.RequestID)
	require.Equal(p.t, longText("s", result), textOf(p.t, answer, "result.text"))
	require.Equal(p.t, longText("s", result), textOf(p.t, p.client.Until("service.completed"), "result.text"))
}

func (p *largeTask) end(n int) {
	p.t.Helper()
	p.agent.Say("agent.task.result", object{"taskId": p.task, "result": longText("r", n)})
	end := p.client.Until("client.agent.task.result")
	require.Equal(p.t, []string{p.request, p.task, "completed"}, []string{end.RequestID, end.Text("taskId"), end.Text("status")})
	require.Equal(p.t, longText("r", n), textOf(p.t, end, "result"))
	process.Eventually(p.t, "the result comes once more", func() bool {
		again := p.client.Again()
		return len(again) > 0 && strings.Contains(again[len(again)-1], p.task)
	})
}
