package task_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	edge "github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
)

// serveGateway starts a whole gateway.
func (r *rig) serveGateway() *servicetest.Web {
	r.T.Helper()
	contract, err := apitest.Current()
	require.NoError(r.T, err)
	return r.WebAt(contract.Check, func(a auth.Authenticator) string {
		s, err := edge.New(edge.Config{Addr: "127.0.0.1:0"}, edge.Deps{
			Logger: zerolog.Nop(), Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Auth: a, Version: "test",
			Routes: map[string]edge.Route{"/ws": edge.Single(orbit.Dialect())},
		})
		r.Run(s, err)
		return "http://" + s.Addr().String()
	})
}

// TestAQuestionOfAnAgent is listed, and its answer goes to the agent. An answer to a question that is not open any more does not
// answer the next one.
func TestAQuestionOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", task.Config{IndexEvery: time.Millisecond})
	w := r.serveGateway()
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	n := r.submit(r.client().ClientID, cmd.NewTask{AgentName: "Adder", TaskType: "add"})
	r.Until(logOf(id.KindTask, n), event.TaskReported, 1)
	listed := func(query string, want int) (list wire.QuestionList) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.Equal(t, http.StatusOK, w.Ask("alice", "GET", "/api/v1/questions"+query, "", &list).Status)
			return len(list.Questions) == want
		}, maxWait, 10*time.Millisecond, query)
		return list
	}
	ask := func(request string) wire.Question {
		t.Helper()
		a.says(n, cmd.AskTask, cmd.TaskQuestion{TaskID: n, AgentID: "a", RequestID: request, Message: json.RawMessage(`"which?"`), TimeoutMS: 600_000})
		return listed("?scope=agent", 1).Questions[0]
	}
	q := ask("q1")
	require.Equal(t, `Adder add "which?"`, strings.Join([]string{q.Asker, q.Title, string(q.Message)}, " "))
	path := "/api/v1/questions/" + q.ID + "/answer"
	var problem wire.Problem
	require.Equal(t, 422, w.Ask("alice", "POST", path, `{"decision":"approve"}`, &problem).Status)
	require.Equal(t, 404, w.Ask("eve", "POST", path, `{"decision":"answer","message":"x"}`, &problem).Status)
	var first, again wire.QuestionOutcome
	body := `{"id":"1","decision":"answer","message":{"text":"this one"}}`
	require.Equal(t, 200, w.Ask("alice", "POST", path, body, &first).Status)
	require.Equal(t, 200, w.Ask("alice", "POST", path, body, &again).Status)
	require.Equal(t, first, again)
	told := r.Until(logOf(id.KindTask, n), event.TaskMessaged, 1)
	d, err := event.As[event.TaskMessagedData](told[len(told)-1])
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"this one"}`, string(d.Message))
	require.Equal(t, q.InputID, d.InputID)
	listed("?state=answered", 1)
	listed("", 0)

	next := ask("q2")
	require.NotEqual(t, q.InputID, next.InputID)
	require.Equal(t, 422, w.Ask("alice", "POST", path, `{"id":"2","decision":"answer","message":"late"}`, &problem).Status)
	require.Equal(t, string(fault.InputNotFound), problem.Title)
	listed("", 1)
	a.done(n, "1")
	listed("?state=withdrawn", 1)
	listed("", 0)
}

// TestATaskIsToldSomethingOverHTTP: each message counts once, however large, and answers the open question of the agent.
func TestATaskIsToldSomethingOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", task.Config{})
	w := r.serveGateway()
	a := r.join(cmd.Participant{ID: "a", Name: "Adder"})
	large := `"` + strings.Repeat("l", 200<<10) + `"`
	var made wire.TaskName
	require.Equal(t, 201, w.Ask("alice", "POST", "/api/v1/tasks", `{"agent_name":"Adder","data":`+large+`}`, &made).Status)
	l := logOf(id.KindTask, made.TaskID)
	r.Until(l, event.TaskReported, 1)
	path := "/api/v1/tasks/" + made.TaskID + "/messages"
	var problem wire.Problem
	for body, status := range map[string]int{``: 400, `{`: 400, `{}`: 422, `{"message":null}`: 422, `{"message":1,"id":"` + strings.Repeat("i", 201) + `"}`: 422} {
		require.Equal(t, status, w.Ask("alice", "POST", path, body, &problem).Status, body)
	}
	for who, status := range map[string]int{"bob": 404, "eve": 404, "vera": 403, "mallory": 401} {
		require.Equal(t, status, w.Ask(who, "POST", path, `{"message":1}`, &problem).Status, who)
	}
	require.Equal(t, 404, w.Ask("alice", "POST", "/api/v1/tasks/none/messages", `{"message":1}`, &problem).Status)
	told := func(n int) event.TaskMessagedData {
		t.Helper()
		all := r.Until(l, event.TaskMessaged, n)
		d, err := event.As[event.TaskMessagedData](all[len(all)-1])
		require.NoError(t, err)
		return d
	}
	var first, again wire.Accepted
	require.Equal(t, 202, w.Ask("alice", "POST", path, `{"id":"1","message":{"text":"louder"}}`, &first).Status)
	require.Equal(t, 202, w.Ask("alice", "POST", path, `{"id":"1","message":{"text":"louder"}}`, &again).Status)
	require.Equal(t, first, again)
	d := told(1)
	require.JSONEq(t, `{"text":"louder"}`, string(d.Message))
	require.Equal(t, first.MessageID+" client.message ", d.MessageID+" "+d.MessageType+" "+d.InputID)
	require.Equal(t, 202, w.Ask("alice", "POST", path, `{"message":`+large+`}`, nil).Status)
	require.NotNil(t, told(2).MessageRef)

	a.says(made.TaskID, cmd.AskTask, cmd.TaskQuestion{TaskID: made.TaskID, AgentID: "a", RequestID: "q", Message: json.RawMessage(`"which?"`), TimeoutMS: 600_000})
	r.Until(l, event.TaskAsked, 1)
	require.Equal(t, 202, w.Ask("alice", "POST", path, `{"message":"this one"}`, nil).Status)
	d = told(3)
	require.NotEmpty(t, d.InputID)
	require.Equal(t, "alice", d.By)
	a.done(made.TaskID, "1")
	r.Until(l, event.TaskFinished, 1)
	require.Equal(t, 409, w.Ask("alice", "POST", path, `{"message":1}`, &problem).Status)
	require.Equal(t, string(fault.TaskFinished), problem.Title)
}
