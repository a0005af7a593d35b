package task_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/payload"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// large is the JSON of a text of so many bytes.
func large(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }

// put stores data for a task, as the gateway does.
func (r *rig) put(taskID string, data json.RawMessage) *event.ObjectRef {
	r.T.Helper()
	ref, err := payload.New(r.Conn).Put(r.Ctx, logOf(id.KindTask, taskID), data)
	require.NoError(r.T, err)
	return ref
}

// TestLargeDataIsReferredTo: large data stays in its object on the whole way, from the request to
// the agent and from the result to the client, the parent and requests about the task.
func TestLargeDataIsReferredTo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	client := r.client()
	parent, child := r.join(cmd.Participant{ID: "p1", Name: "Parent"}), r.join(cmd.Participant{ID: "k1", Name: "Child"})
	data := r.put("t1", large(300<<10))
	r.submit(client.ClientID, cmd.NewTask{TaskID: "t1", AgentName: "Parent", Data: json.RawMessage("null"), DataRef: data})
	got := hears[event.TaskAssignedData](parent)
	require.Equal(t, data, got.DataRef)
	require.JSONEq(t, "null", string(got.Data))

	part := r.put("t2", large(400<<10))
	parent.says("t1", cmd.SpawnTask, cmd.SpawnChild{TaskID: "t1", AgentID: "p1", RequestID: "f", ChildID: "t2", TargetName: "Child", DataRef: part})
	require.Equal(t, part, hears[event.TaskAssignedData](child).DataRef)
	hears[event.ChildCreatedData](parent)
	result := r.put("t2", large(500<<10))
	child.says("t2", cmd.FinishTask, cmd.TaskResult{TaskID: "t2", AgentID: "k1", ResultRef: result})
	require.Equal(t, result, hears[event.ChildFinishedData](parent).ResultRef)

	note := r.put("t1", large(200<<10))
	parent.says("t1", cmd.NotifyTask, cmd.TaskNotification{TaskID: "t1", AgentID: "p1", Message: json.RawMessage(`"n"`), DataRef: note})
	r.command("t1", cmd.MessageTask, "m1", cmd.TaskMessage{TaskID: "t1", ClientID: client.ClientID, MessageRef: note}, "")
	require.Equal(t, note, hears[event.TaskMessagedData](parent).MessageRef)
	r.Until(logOf(id.KindInbox, client.ClientID), event.TaskFinished, 1) // the child's, which may come after its parent knows
	end := r.put("t1", large(900<<10))
	parent.says("t1", cmd.FinishTask, cmd.TaskResult{TaskID: "t1", AgentID: "p1", Failed: true, ResultRef: end})

	refs := map[event.Type]*event.ObjectRef{}
	for _, e := range r.Until(logOf(id.KindInbox, client.ClientID), event.TaskFinished, 2) {
		data, err := event.Refers(e)
		require.NoError(t, err)
		if data == nil {
			continue
		}
		for _, p := range data.Payloads() {
			if *p.Ref != nil {
				refs[e.Type] = *p.Ref
			}
		}
		require.NoError(t, payload.New(r.Conn).Fill(r.Ctx, tenant, data), "%s", e.Type)
	}
	require.Equal(t, map[event.Type]*event.ObjectRef{
		event.ChildFinished: result, event.TaskNotified: note, event.TaskMessaged: note, event.TaskFinished: end,
	}, refs, "what a client asks for it is not told again")
	var v cmd.TaskView
	require.NoError(t, r.ask(cmd.ShowTask, client.ClientID, cmd.TaskRefData{TaskID: "t1"}, &v))
	require.Equal(t, end, v.ResultRef)
	r.shown(large(300<<10), large(900<<10), end)
}

// shown asks the HTTP API for the task t1, and for the list.
func (r *rig) shown(data, result json.RawMessage, ref *event.ObjectRef) {
	r.T.Helper()
	mux := http.NewServeMux()
	api.New(api.Config{Edge: apitest.Edge(r.Conn, r.Log, r.Send), Auth: apitest.Anywhere{Auth: auth.Anonymous()}}).Mount(mux)
	ask := func(path string, into any) {
		r.T.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
		require.Equal(r.T, http.StatusOK, w.Code, "%.300s", w.Body)
		require.NoError(r.T, json.Unmarshal(w.Body.Bytes(), into))
	}
	var one wire.TaskDetail
	ask("/api/v1/tasks/t1", &one)
	require.Equal(r.T, []bool{true, true}, []bool{string(data) == string(one.Task.Data), string(result) == string(one.Result)})
	require.Nil(r.T, one.ResultRef)
	var all struct{ Tasks []wire.TaskSummary }
	require.Eventually(r.T, func() bool {
		all.Tasks = nil
		ask("/api/v1/tasks", &all)
		return slices.ContainsFunc(all.Tasks, func(s wire.TaskSummary) bool { return s.TaskID == "t1" })
	}, maxWait, 10*time.Millisecond)
	for _, s := range all.Tasks {
		if s.TaskID == "t1" {
			require.Equal(r.T, ref, s.ResultRef, "a list refers to it")
			require.Empty(r.T, s.Result)
		}
	}
}

// TestLargeCalls: a tool is given arguments that are stored, and its answer is stored.
// Arguments that are lost fail the call before it begins.
func TestLargeCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		return tools.Result{Data: c.Arguments}, nil
	}
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	taskID := r.submit("", cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](a)
	args := json.RawMessage(`{"text":` + string(large(300<<10)) + `}`)
	ref := r.put(taskID, args)
	call := cmd.ToolRequest{TaskID: taskID, AgentID: "w1", Kind: tools.KindService, Server: "shop", Tool: "price", ArgumentsRef: ref}
	a.says(taskID, cmd.CallTool, call)
	out := hears[event.CallFinishedData](a)
	require.Equal(t, []string{"success", ""}, []string{out.Status, out.Code})
	require.Equal(t, ref, out.ResultRef, "it is the same text of the same task")

	call.ArgumentsRef = &event.ObjectRef{Log: ref.Log, Digest: strings.Repeat("0", subject.DigestHex), Size: 7}
	a.says(taskID, cmd.CallTool, call)
	out = hears[event.CallFinishedData](a)
	require.Equal(t, []string{"error", string(fault.PayloadLost)}, []string{out.Status, out.Code})
	require.Equal(t, 1, r.box.made())
}

// TestALargeResultOfASession: a job of a plan gets the beginning of a result that is
// stored, and fails if that is lost.
func TestALargeResultOfASession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.Taken(cmd.Pipeline)
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	gone := &event.ObjectRef{Log: "task.t2", Digest: strings.Repeat("0", subject.DigestHex), Size: 7}
	for taskID, ref := range map[string]*event.ObjectRef{"t1": r.put("t1", json.RawMessage(`{"text":`+string(large(300<<10))+`}`)), "t2": gone} {
		r.command(taskID, cmd.CreateTask, "u.create", cmd.NewTask{
			TaskID: taskID, AgentName: "W", Data: json.RawMessage("1"), Session: "s1", RunID: "r1", JobID: taskID,
		}, "")
		hears[event.TaskAssignedData](a)
		c, taken := next(t, got), cmd.AssignedJob{}
		require.NoError(t, c.Decode(&taken))
		require.Equal(t, cmd.AssignJob, c.Verb)
		require.Equal(t, cmd.AssignedJob{JobRef: cmd.JobRef{RunID: "r1", JobID: taskID}, TaskID: taskID, Agent: "W", Attempt: 1}, taken)
		a.says(taskID, cmd.FinishTask, cmd.TaskResult{TaskID: taskID, AgentID: "w1", ResultRef: ref})
		hears[event.TaskFinishedData](a)
		var done cmd.FinishedJob
		require.NoError(t, next(t, got).Decode(&done))
		if ref == gone {
			require.Equal(t, []any{true, string(fault.PayloadLost), ""}, []any{done.Failed, done.Code, done.Output})
			continue
		}
		require.False(t, done.Failed, done.Message)
		require.Equal(t, strings.Repeat("x", 40<<10), done.Output)
	}
}
