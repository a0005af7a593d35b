package task_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/remote"
	toolservice "github.com/waggle-dev/waggle/services/tools/service"
)

// signed is serveAPI of a gateway with a signer.
func (r *rig) signed(s *signature.Signer) *servicetest.Web {
	r.T.Helper()
	contract, err := apitest.Current()
	require.NoError(r.T, err)
	return r.Web(contract.Check, func(mux *http.ServeMux, a auth.Authenticator) {
		outside := apitest.Edge(r.Conn, r.Log, r.Send)
		outside.Signer = s
		api.New(api.Config{Edge: outside, Auth: apitest.Anywhere{Auth: a}}).Mount(mux)
	})
}

// withTools starts the service with the workspace's tools, whose calls people have to approve.
func (r *rig) withTools(v *signature.Verifier, cfg task.Config) {
	r.T.Helper()
	svc, err := toolservice.New(toolservice.Config{
		Servers: []mcp.Config{{Name: "broken", Command: []string{"/bin/sh", "-c", `echo "set API_KEY" >&2; exit 2`}}},
		Builtin: true, Workspace: r.T.(*testing.T).TempDir() + "/workspace", BuiltinRules: tools.Rules{Approval: event.ApprovalAlways},
	}, toolservice.Deps{Conn: r.Conn, Directory: r.Dir, Logger: zerolog.Nop(), Signatures: v})
	require.NoError(r.T, err)
	r.T.Cleanup(svc.Stop)
	require.NoError(r.T, svc.Start(r.Ctx))
	s, err := task.New(cfg, r.Deps("one"), remote.NewClient(r.Conn))
	r.Run(s, err)
}

const (
	readFile = "/api/v1/tools/workspace/read_file"
	callRead = readFile + "/call?wait=50"
)

// calls asks for a call of a tool.
func calls(w *servicetest.Web, who, tool, body string, status int) wire.CallView {
	w.T.Helper()
	var out wire.CallView
	wait := map[int]string{200: "50", 202: "1"}[status]
	a := w.Ask(who, "POST", "/api/v1/tools/"+tool+"/call?wait="+wait, body, &out)
	require.Equal(w.T, status, a.Status, a.Body)
	return out
}

// problem asks for something that is refused.
func problem(w *servicetest.Web, who, method, path, body string, status int) wire.Problem {
	w.T.Helper()
	var out wire.Problem
	a := w.Ask(who, method, path, body, &out)
	require.Equal(w.T, status, a.Status, a.Body)
	return out
}

// TestAPersonCallsATool: the call runs once, under the operator's policy, and its log shows it to the tenant.
func TestAPersonCallsATool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, v := servicetest.Keys(t, nil)
	r.withTools(v, task.Config{})
	w := r.signed(s)

	read := `{"id":"one","kind":"mcp","arguments":{"path":"notes.md"}}`
	first := calls(w, "alice", "workspace/read_file", read, 200)
	require.Equal(t, "success", first.Status, first.Error)
	require.Contains(t, string(first.Result), "text")
	require.Equal(t, first, calls(w, "alice", "workspace/read_file", read, 200), "a repeat has the same answer")
	require.NotEqual(t, first.CallID, calls(w, "bob", "workspace/read_file", read, 200).CallID, "another person's id is another call")
	require.Equal(t, "call.started call.finished", types(r.All(logOf(id.KindCall, first.CallID))))

	var page wire.LogPage
	require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/logs/call/"+first.CallID+"/events", "", &page).Status)
	require.Len(t, page.Events, 2)
	require.Contains(t, string(page.Events[0]), `"principal":"alice"`)
	problem(w, "eve", "GET", "/api/v1/logs/call/"+first.CallID+"/events", "", 404)
	problem(w, "vera", "POST", callRead, read, 403)

	wrong := problem(w, "alice", "POST", callRead, `{"id":"two","kind":"mcp","arguments":{"path":7}}`, 422)
	require.Equal(t, []string{string(fault.ToolBadInput), "arguments/path"}, []string{wrong.Title, wrong.Field})
	require.Equal(t, "arguments", problem(w, "alice", "POST", callRead, `{"kind":"mcp"}`, 422).Field, "a missing argument")
	require.Equal(t, "kind", problem(w, "alice", "POST", callRead, `{"kind":"x"}`, 422).Field)
	require.Equal(t, "wait", problem(w, "alice", "POST", "/api/v1/tools/workspace/read_file/call?wait=0", read, 422).Field)
	problem(w, "alice", "POST", "/api/v1/tools/workspace/fly/call?wait=50", `{"kind":"mcp"}`, 404)
	problem(w, "alice", "POST", "/api/v1/tools/nothing/read_file/call?wait=50", `{"kind":"mcp"}`, 404)

	unsigned := r.serveAPI()
	require.Equal(t, string(fault.ToolDenied), problem(unsigned, "alice", "POST", callRead, `{"id":"three","kind":"mcp","arguments":{"path":"notes.md"}}`, 403).Title)
}

// TestTheAPIOfTools: the list has each tool once, page by page, and a tool has its schema and who may call it.
func TestTheAPIOfTools(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, v := servicetest.Keys(t, nil)
	r.withTools(v, task.Config{})
	w := r.signed(s)

	var whole wire.ToolPage
	require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/tools?kind=mcp", "", &whole).Status)
	require.Greater(t, len(whole.Tools), 3)
	require.False(t, whole.More)
	var paged []wire.ToolSummary
	for before, more := "", true; more; {
		var page wire.ToolPage
		require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/tools?limit=2&before="+url.QueryEscape(before), "", &page).Status)
		require.LessOrEqual(t, len(page.Tools), 2)
		paged, before, more = append(paged, page.Tools...), page.Next, page.More
	}
	require.Equal(t, whole.Tools, paged)
	require.Eventually(t, func() bool {
		whole = wire.ToolPage{}
		require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/tools?provider=broken", "", &whole).Status)
		return len(whole.Servers) > 0
	}, maxWait, 20*time.Millisecond)
	require.Len(t, whole.Servers, 1)
	trouble := whole.Servers[0].Trouble
	require.Contains(t, trouble, "the program ended: exit status 2. Its last words:\nset API_KEY")
	require.Equal(t, wire.ToolServer{Kind: "mcp", Provider: "broken", Status: "inactive", Trouble: trouble}, whole.Servers[0])
	require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/tools?provider=workspace", "", &whole).Status)
	var none wire.ToolPage
	require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/tools?provider=nothing", "", &none).Status)
	require.Empty(t, none.Tools)
	require.Equal(t, "before", problem(w, "vera", "GET", "/api/v1/tools?before=%2A", "", 422).Field)

	var one wire.ToolDetail
	require.Equal(t, 200, w.Ask("vera", "GET", readFile+"?kind=mcp", "", &one).Status)
	require.Equal(t, "read_file", one.Name)
	require.True(t, one.ReadOnly && one.Idempotent && one.Models && one.Asks)
	require.False(t, one.Agents, "people are asked about it")
	require.Contains(t, string(one.InputSchema), `"path"`)
	problem(w, "vera", "GET", "/api/v1/tools/workspace/fly?kind=mcp", "", 404)
	problem(w, "vera", "GET", "/api/v1/tools/nothing/fly?kind=service", "", 404)
}

// TestCallsOfPeopleCountForTheDay: as the calls of runs do, and a repeat does not count.
func TestCallsOfPeopleCountForTheDay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, v := servicetest.Keys(t, nil)
	daily, err := quota.OpenDaily(r.Ctx, quota.Config{Conn: r.Conn, Policy: quota.Policy{Principal: quota.Limits{ToolCalls: 2}}})
	require.NoError(t, err)
	t.Cleanup(daily.Close)
	r.withTools(v, task.Config{Daily: daily})
	w := r.signed(s)
	body := func(id string) string { return `{"id":"` + id + `","kind":"mcp","arguments":{"path":"notes.md"}}` }
	for _, id := range []string{"1", "1", "2", "1"} {
		require.Equal(t, "success", calls(w, "alice", "workspace/read_file", body(id), 200).Status)
	}
	require.Equal(t, string(fault.QuotaExceeded), problem(w, "alice", "POST", callRead, body("3"), 429).Title)
	require.Equal(t, "success", calls(w, "bob", "workspace/read_file", body("3"), 200).Status)
}

// TestALongCallIsFollowedInItsLog: the request ends before the call does, and a repeat joins the call.
func TestALongCallIsFollowedInItsLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	finish := make(chan struct{})
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		<-finish
		return tools.Result{Data: c.Arguments}, nil
	}
	r.start("a", task.Config{})
	w := r.serveAPI()
	buy := `{"id":"one","kind":"service","arguments":{"n":1}}`
	begun := calls(w, "alice", "shop/buy", buy, 202)
	require.Contains(t, []string{"running", "queued"}, begun.Status)
	r.Until(logOf(id.KindCall, begun.CallID), event.CallStarted, 1)
	close(finish)
	r.Until(logOf(id.KindCall, begun.CallID), event.CallFinished, 1)
	over := calls(w, "alice", "shop/buy", buy, 200)
	require.Equal(t, []string{"success", `{"n":1}`, begun.CallID}, []string{over.Status, string(over.Result), over.CallID})
	require.Equal(t, 1, r.box.made())
}

// TestTheProviderOfACallDies: so does a provider that goes away in the middle of a call.
func TestTheProviderOfACallDies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.play = func(context.Context, tools.Call, func(tools.Notification)) (tools.Result, error) {
		return tools.Result{}, fault.New(fault.ServiceLost)
	}
	r.start("a", task.Config{})
	over := calls(r.serveAPI(), "alice", "shop/buy", `{"kind":"service"}`, 200)
	require.Equal(t, []string{"unknown", string(fault.ServiceLost)}, []string{over.Status, over.Code})
}

// TestRetry: a task that has failed or was cancelled is submitted again as a new one, which names it.
func TestRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", task.Config{IndexEvery: time.Millisecond})
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	w := r.serveAPI()
	create := func(data string) string {
		var made wire.TaskName
		require.Equal(t, 201, w.Ask("alice", "POST", "/api/v1/tasks", `{"agent_name":"Adder","task_type":"sum","data":`+data+`}`, &made).Status)
		require.Equal(t, made.TaskID, hears[event.TaskAssignedData](a).TaskID)
		return made.TaskID
	}
	retry := func(who, of, body string, status int) (made wire.TaskName) {
		got := w.Ask(who, "POST", "/api/v1/tasks/"+of+"/retry", body, &made)
		require.Equal(t, status, got.Status, got.Body)
		return made
	}
	large := `"` + strings.Repeat("x", 100<<10) + `"` // stored apart from the event
	old := create(large)
	require.Equal(t, string(fault.TaskOpen), problem(w, "alice", "POST", "/api/v1/tasks/"+old+"/retry", "", 409).Title)
	require.Equal(t, 200, w.Ask("alice", "POST", "/api/v1/tasks/"+old+"/cancel", "", nil).Status)
	require.Equal(t, "cancelled", hears[event.TaskFinishedData](a).Status)
	retry("vera", old, "", 403)
	retry("eve", old, "", 404)
	retry("alice", "nothing", "", 404)

	first := retry("alice", old, `{"id":"r1"}`, 201)
	require.Equal(t, first.TaskID, hears[event.TaskAssignedData](a).TaskID)
	require.Equal(t, first, retry("alice", old, `{"id":"r1"}`, 201), "a repeat has the same answer")
	require.NotEqual(t, first, retry("alice", old, `{"id":"r2"}`, 201))
	hears[event.TaskAssignedData](a)
	var one wire.TaskDetail
	require.Equal(t, 200, w.Ask("vera", "GET", "/api/v1/tasks/"+first.TaskID, "", &one).Status)
	require.Equal(t, []string{old, "sum", "Adder"}, []string{one.Task.RetryOf, one.Task.TaskType, one.Task.WantedName})
	require.Equal(t, large, string(one.Task.Data))

	a.done(first.TaskID, "42")
	hears[event.TaskFinishedData](a)
	r.Until(logOf(id.KindTask, first.TaskID), event.TaskFinished, 1)
	require.Equal(t, string(fault.TaskFinished), problem(w, "alice", "POST", "/api/v1/tasks/"+first.TaskID+"/retry", "", 409).Title)
}
