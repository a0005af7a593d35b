package e2e_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
)

// TestATaskBeyondTheBound: data beyond the bound of a frame fails its task, call or
// request with a reason. All sockets stay, no task is handed out again,
// and agents and services are told nothing that their SDKs do not expect. The frames of the
// agent and the service are written as those of the SDKs. testdata/asp holds the
// frames of each party.
func TestATaskBeyondTheBound(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	h := p.swarm()
	large := strings.Repeat("0123456789", 130_000)
	service := h.service("archive", "Archive", func(b *client.Swarm, f client.SwarmFrame) {
		if f.Type == "service.task.execute" {
			_ = b.Quote(`{"type":"service.task.result","content":{"serviceId":"archive","taskId":"` + f.ID + `","result":{"text":"` + large + `"}}}`)
		}
	}, object{"id": "fetch", "name": "fetch"})
	agent := h.agent("writer", "Writer", nil)
	client := h.client()

	first := client.Say("client.agent.task.create.request", object{"agentId": "writer", "agentName": "Writer", "taskData": object{"n": 1}})
	task := agent.Until("task.execute").ID
	for _, frame := range []string{
		`{"type":"task.status","content":{"agentId":"writer","taskId":"` + task + `","status":"started"}}`,
		`{"type":"agent.task.result","content":{"agentId":"writer","taskId":"` + task + `","result":{"text":"` + large + `"}}}`,
		`{"type":"task.status","content":{"agentId":"writer","taskId":"` + task + `","status":"completed","result":{"text":"` + large + `"}}}`,
	} {
		require.NoError(t, agent.Quote(frame))
	}
	client.Until("task.error")
	end := client.Until("client.agent.task.result")
	require.Equal(t, []string{first, "failed", "MESSAGE_TOO_BIG"}, []string{end.RequestID, end.Text("status"), end.Text("code")})
	require.Contains(t, end.Text("error"), "1048576")

	client.Say("client.agent.task.create.request", object{"agentId": "writer", "agentName": "Writer", "taskData": object{"n": 2}})
	second := agent.Until("task.execute").ID
	call := agent.Get("service.task.execute.response", "service.task.execute", object{"serviceId": "archive", "toolId": "fetch", "params": object{}, "taskId": second})
	require.Equal(t, []string{"failed", "MESSAGE_TOO_BIG"}, []string{call.Text("status"), call.Text("code")})
	agent.Say("agent.task.result", object{"taskId": second, "result": "short"})
	require.Equal(t, "completed", client.Until("client.agent.task.result").Text("status"))

	refused := client.Ask("client.agent.task.create.request", object{"agentId": "writer", "agentName": "Writer", "taskData": object{"text": large}})
	require.Equal(t, []string{"error", "MESSAGE_TOO_BIG"}, []string{refused.Type, refused.Text("code")})

	log := over(t, http.MethodGet, p.url("/api/v1/tasks/"+task), p.key)
	require.Equal(t, 1, strings.Count(log, `"type":"task.assigned"`), "the task is not handed out again")
	require.Empty(t, append(agent.Errors(), service.Errors()...))
	process.Eventually(t, "the result comes once more", func() bool { return len(client.Again()) == 1 })
	transcribed(t, filepath.Join("testdata", "asp", "beyond.txtar"), verify.SwarmTranscript(
		verify.Part{Name: "client", Conn: client}, verify.Part{Name: "agent", Conn: agent}, verify.Part{Name: "service", Conn: service},
	))
}
