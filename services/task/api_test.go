package task_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
)

func (r *rig) serveAPI() *servicetest.Web {
	r.T.Helper()
	contract, err := apitest.Current()
	require.NoError(r.T, err)
	return r.Web(contract.Check, func(mux *http.ServeMux, a auth.Authenticator) {
		api.New(api.Config{Edge: apitest.Edge(r.Conn, r.Log, r.Send), Auth: apitest.Anywhere{Auth: a}}).Mount(mux)
	})
}

// tasks is a page of the list of tasks.
type tasks struct {
	Tasks []wire.TaskSummary
	Next  string
	More  bool
}

func (l tasks) ids() []string {
	var out []string
	for _, s := range l.Tasks {
		out = append(out, s.TaskID)
	}
	return out
}

func TestTheAPIOfTasks(t *testing.T) {
	r := newRig(t)
	r.start("one", task.Config{IndexEvery: time.Millisecond})
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	client := r.client().ClientID
	var ids []string
	for range 3 {
		n := r.submit(client, cmd.NewTask{AgentName: "Adder"})
		r.Until(logOf(id.KindTask, n), event.TaskReported, 1) // that it was delivered: nothing follows by itself
		var last event.Event
		for len(a.heard) > 0 { // more than once if a confirmation came late
			last = <-a.heard
			require.Contains(t, string(last.Data), n)
		}
		require.Equal(t, event.TaskAssigned, last.Type)
		ids = append(ids, n)
	}
	a.done(ids[1], "42")
	r.Until(logOf(id.KindTask, ids[1]), event.TaskFinished, 1)
	w := r.serveAPI()

	var list tasks
	require.Eventually(t, func() bool {
		list = tasks{}
		require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/tasks?limit=2", "", &list).Status)
		return list.More && list.Tasks[0].TaskID == ids[1]
	}, maxWait, 10*time.Millisecond, "what changed last comes first")
	require.Equal(t, "completed", list.Tasks[0].Status)
	require.JSONEq(t, `"42"`, string(list.Tasks[0].Result))
	require.Equal(t, "running", list.Tasks[1].Status)
	require.True(t, list.More)
	got := list.ids()
	var rest tasks
	require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/tasks?before="+url.QueryEscape(list.Next), "", &rest).Status)
	require.False(t, rest.More)
	require.ElementsMatch(t, ids, append(got, rest.ids()...))

	var one wire.TaskDetail
	require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/tasks/"+ids[0], "", &one).Status)
	require.Equal(t, "a", one.AgentID)
	require.JSONEq(t, `{"do":"it"}`, string(one.Task.Data))
	require.Len(t, one.Events, int(one.LastSeq))

	require.Equal(t, 200, w.Ask("alice", "POST", "/api/v1/tasks/"+ids[0]+"/cancel", `{"reason":"enough"}`, nil).Status)
	own := hears[event.TaskFinishedData](a)
	require.Equal(t, ids[1], own.TaskID)
	require.Equal(t, "completed", own.Status, "its own result")
	stopped := hears[event.TaskFinishedData](a)
	for stopped.TaskID == own.TaskID { // the same
		stopped = hears[event.TaskFinishedData](a)
	}
	require.Equal(t, ids[0], stopped.TaskID)
	require.Equal(t, "cancelled", stopped.Status)
	require.Contains(t, stopped.Error, "enough")
}

func TestTheAPIKeepsTenantsApart(t *testing.T) {
	r := newRig(t)
	r.start("one", task.Config{})
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	r.join(cmd.Participant{ID: "s", Name: "Shop", Kind: cmd.ParticipantService})
	r.join(cmd.Participant{ID: "c", Name: "Browser", Kind: cmd.ParticipantClient})
	mine := r.submit(r.client().ClientID, cmd.NewTask{AgentName: "Adder"})
	hears[event.TaskAssignedData](a)
	w := r.serveAPI()
	for path, member := range map[string]string{"agents": "agents", "services": "services", "clients": "clients", "mcp": "servers", "tasks": "tasks"} {
		var out map[string]json.RawMessage
		require.Eventually(t, func() bool {
			require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/"+path, "", &out).Status)
			return string(out[member]) != "[]"
		}, maxWait, 10*time.Millisecond, path)
		require.NotRegexp(t, `"c-[asc]"`, string(out[member]), "where a participant is connected is nobody's business")
		if path == "mcp" {
			continue // which servers a tenant sees the tool service decides
		}
		require.Equal(t, 200, w.Ask("eve", "GET", "/api/v1/"+path, "", &out).Status)
		require.Equal(t, "[]", string(out[member]), path)
		require.Equal(t, 401, w.Ask("nobody", "GET", "/api/v1/"+path, "", nil).Status, path)
	}
	require.Equal(t, 404, w.Ask("eve", "GET", "/api/v1/tasks/"+mine, "", nil).Status)
	require.Equal(t, 404, w.Ask("eve", "POST", "/api/v1/tasks/"+mine+"/cancel", "", nil).Status)
	require.Equal(t, 401, w.Ask("nobody", "POST", "/api/v1/tasks/"+mine+"/cancel", "", nil).Status)
	a.done(mine, "done")
	ends := r.Until(logOf(id.KindTask, mine), event.TaskFinished, 1)
	require.Contains(t, types(ends), "task.finished")
	require.NotContains(t, types(ends), "cancelled")
	require.Equal(t, 409, w.Ask("alice", "POST", "/api/v1/tasks/"+mine+"/cancel", "", nil).Status)
}

func TestTheAPIOfParticipantsFilters(t *testing.T) {
	r := newRig(t)
	r.start("one", task.Config{})
	r.join(cmd.Participant{ID: "a", Name: "Adder", Capabilities: []string{"math", "tax"}})
	r.join(cmd.Participant{ID: "b", Name: "Boss", Capabilities: []string{"math"}, Status: cmd.StatusBusy})
	w := r.serveAPI()
	for query, want := range map[string][]string{
		"":                                {"Adder", "Boss"},
		"?capability=math&capability=tax": {"Adder"},
		"?status=busy":                    {"Boss"},
		"?name=ADD":                       {"Adder"},
		"?type=robot":                     {},
	} {
		var out struct{ Agents []cmd.Participant }
		require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/agents"+query, "", &out).Status)
		names := []string{}
		for _, p := range out.Agents {
			names = append(names, p.Name)
		}
		require.Equal(t, want, names, query)
	}
	for before, want := range map[string]string{"": "Adder", "next": "Boss"} {
		var first, page wire.AgentList
		require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/agents?limit=1", "", &first).Status)
		require.NotEmpty(t, first.Next)
		if before != "" {
			before = first.Next
		}
		require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/agents?limit=1&before="+before, "", &page).Status)
		require.Len(t, page.Agents, 1)
		require.Equal(t, want, page.Agents[0].Name)
	}
	for _, bad := range []string{"limit=0", "limit=201", "limit=x", "before=x", "before=_"} {
		require.Equal(t, 422, w.Ask("alice", "GET", "/api/v1/tasks?"+bad, "", nil).Status, bad)
	}
	require.Equal(t, 404, w.Ask("alice", "GET", "/api/v1/tasks/none", "", nil).Status)
}

// TestATaskOverHTTP: a task is created once, however often the request comes with the client's id.
func TestATaskOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", task.Config{})
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	w := r.serveAPI()
	const path, body = "/api/v1/tasks", `{"id":"1","agent_name":"Adder","task_type":"add","data":{"n":[1,2]}}`
	var first, again, other wire.TaskName
	created := w.Ask("alice", "POST", path, body, &first)
	require.Equal(t, 201, created.Status, created.Body)
	require.Equal(t, path+"/"+first.TaskID, created.Header.Get("Location"))
	given := hears[event.TaskAssignedData](a)
	require.Equal(t, first.TaskID+` add {"n":[1,2]}`, given.TaskID+" "+given.TaskType+" "+string(given.Data))
	require.Equal(t, 201, w.Ask("alice", "POST", path, body, &again).Status)
	require.Equal(t, first, again)
	require.Equal(t, 201, w.Ask("bob", "POST", path, body, &other).Status)
	require.NotEqual(t, first, other, "another user's id")
	require.Len(t, r.Until(logOf(id.KindTask, first.TaskID), event.TaskAssigned, 1), 2)
	for n := range 20 {
		one := w.Ask("alice", "POST", path, fmt.Sprintf(`{"id":"at once %d","agent_name":"Adder","data":1}`, n), nil)
		require.Equal(t, 201, one.Status, one.Body)
		require.Equal(t, 200, w.Ask("alice", "GET", one.Header.Get("Location"), "", nil).Status, "the address is there")
	}
	var problem wire.Problem
	for body, status := range map[string]int{
		`{"data":1}`: 422, `{"agent_name":"None","data":1}`: 404, `{"agent_name":"Adder","data":1,"timeout_ms":-1}`: 422, `{`: 400, ``: 400,
	} {
		require.Equal(t, status, w.Ask("alice", "POST", path, body, &problem).Status, body)
	}
	require.Equal(t, 403, w.Ask("vera", "POST", path, body, &problem).Status)
}

// TestALongTaskShowsItsNewestEvents, whatever came before them.
func TestALongTaskShowsItsNewestEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", task.Config{})
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	w := r.serveAPI()
	var made wire.TaskName
	require.Equal(t, 201, w.Ask("alice", "POST", "/api/v1/tasks", `{"agent_name":"Adder","data":1}`, &made).Status)
	hears[event.TaskAssignedData](a)
	const notes = 210
	for n := range notes {
		a.says(made.TaskID, cmd.NotifyTask, cmd.TaskNotification{TaskID: made.TaskID, AgentID: "a", Message: json.RawMessage(fmt.Sprint(n))})
	}
	last := r.Until(logOf(id.KindTask, made.TaskID), event.TaskNotified, notes)
	var one wire.TaskDetail
	require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/tasks/"+made.TaskID, "", &one).Status)
	require.Len(t, one.Events, 200)
	for i, want := range map[int]uint64{0: one.LastSeq - 199, 199: one.LastSeq} {
		var e struct {
			Sequence uint64 `json:"sequence"`
		}
		require.NoError(t, json.Unmarshal(one.Events[i], &e))
		require.Equal(t, want, e.Sequence)
	}
	require.GreaterOrEqual(t, one.LastSeq, last[len(last)-1].Sequence)
}
