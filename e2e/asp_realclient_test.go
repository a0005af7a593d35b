package e2e_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
)

// counted is a connection that counts its reads.
type counted struct {
	net.Conn
	reads *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.reads.Add(1)
	return n, err
}

// sendTask does what sendTask() of the client SDK does in its default mode: its call settles
// on a result with the requestId, and then on another one of the same task. It looks for
// the second only when all frames of the read that brought the first have been handled.
func sendTask(t *testing.T, p place, content object) (first, second client.SwarmFrame, between []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
	defer cancel()
	var reads atomic.Int64
	conn, _, err := websocket.Dial(ctx, "ws://"+p.addr+"/ws/asp/client", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + p.key}}, HTTPClient: &http.Client{ //nolint:bodyclose // closed by the library
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, to)
			return counted{c, &reads}, err
		}},
	}})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	request, err := json.Marshal(object{"id": "3f0c5a52-6d6e-4a9e-9a5c-0d7a0b0e7c11", "type": "client.agent.task.create.request", "noTimeout": true, "content": content})
	require.NoError(t, err)
	require.NoError(t, conn.Write(ctx, websocket.MessageText, request))
	var at int64
	for {
		_, raw, err := conn.Read(ctx)
		require.NoError(t, err, "the call does not settle; got %v", between)
		var f client.SwarmFrame
		require.NoError(t, json.Unmarshal(raw, &f))
		between = append(between, f.Type)
		switch {
		case f.Type != "client.agent.task.result":
		case at == 0 && f.RequestID == "3f0c5a52-6d6e-4a9e-9a5c-0d7a0b0e7c11":
			first, at = f, reads.Load()
		case at > 0 && reads.Load() > at && f.Text("taskId") == first.Text("taskId"):
			return first, f, between
		}
	}
}

// TestTheSDKsCallForATaskSettles in its default mode, with an agent of the SDK, which ends
// its task by a result and a status.
func TestTheSDKsCallForATaskSettles(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	h := p.swarm()
	h.agent("base-1", "Base", func(a *client.Swarm, f client.SwarmFrame) {
		if f.Type == "task.execute" {
			a.Say("task.status", object{"agentId": "base-1", "taskId": f.Text("taskId"), "status": "started"})
			a.Say("agent.task.result", object{"agentId": "base-1", "taskId": f.Text("taskId"), "result": object{"ok": true}})
			a.Say("task.status", object{"agentId": "base-1", "taskId": f.Text("taskId"), "status": "completed", "result": object{"ok": true}})
		}
	})
	first, second, _ := sendTask(t, p, object{"agentId": "base-1", "agentName": "Base", "taskData": object{"x": 1}})
	require.Equal(t, first.ID, second.ID, "a client that compares ids sees one")
	require.JSONEq(t, string(first.Content), string(second.Content))
	require.Positive(t, first.Seq)
	require.Zero(t, second.Seq)
	require.Empty(t, second.RequestID)
}

// TestAsTheSDKDoesIt: statuses in the SDK's words, a child agent asked for without a parent,
// and a call for a task in the SDK's default mode, which takes the result twice.
// testdata/asp holds the frames of each party.
func TestAsTheSDKDoesIt(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	h := p.swarm()
	c, watcher := h.client(), h.client()
	list := func(c *client.Swarm, status string) string {
		return string(c.Get("client.agent.list.response", "client.agent.list.request", object{"filters": object{"status": status}}).Member("agents"))
	}
	shows := func(status string) { // to others than the agent, a moment later
		process.Eventually(t, "the agent is "+status, func() bool { return list(watcher, status) != "[]" })
		require.Contains(t, list(c, status), `"status":"`+status+`"`)
	}
	a := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleAgent, Addr: p.addr, Key: p.key})
	a.Until("orchestrator.welcome")
	a.Get("agent.registered", "agent.register", object{"id": "base-1", "name": "Base", "capabilities": []string{"x"}})
	shows("online")
	require.Equal(t, "busy", a.Get("agent.status.updated", "agent.status", object{"status": "busy"}).Text("status"))
	shows("busy")
	require.Equal(t, "[]", list(c, "online"))
	require.Equal(t, "online", a.Get("agent.status.updated", "agent.status", object{"status": "online"}).Text("status"))
	shows("online")
	require.Contains(t, list(c, "active"), `"status":"active","state":"online"`, "asked in the words of the description")

	h.agent("helper-1", "Helper", func(b *client.Swarm, f client.SwarmFrame) {
		if f.Type == "task.execute" {
			b.Say("agent.task.result", object{"agentId": "helper-1", "taskId": f.ID, "result": object{"help": true}})
		}
	})
	c.Say("client.agent.task.create.request", object{"agentName": "Base", "taskData": object{"do": "it"}})
	task := a.Until("task.execute").ID
	a.Say("task.status", object{"agentId": "base-1", "taskId": task, "status": "started"})
	a.Say("agent.request", object{"targetAgent": "Helper", "taskData": object{"part": 1}})
	require.Equal(t, task, a.Until("childagent.request.accepted").Text("parentTaskId"))
	require.Equal(t, "completed", a.Until("childagent.response").Text("status"))
	a.Say("agent.task.result", object{"agentId": "base-1", "taskId": task, "result": object{"ok": true}})
	c.Until("client.agent.task.result")
	process.Eventually(t, "the result comes once more", func() bool { return len(c.Again()) == 1 })
	transcribed(t, filepath.Join("testdata", "asp", "sdk.txtar"), verify.SwarmTranscript(
		verify.Part{Name: "client", Conn: c}, verify.Part{Name: "agent", Conn: a},
	))
}
