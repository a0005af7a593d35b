package session_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
)

// tick spaces the looks at a list, and indexed keeps lists as current as they can be.
const tick = 10 * time.Millisecond

var indexed = session.Config{IndexEvery: time.Millisecond}

// serveGateway starts a whole gateway.
func (r *rig) serveGateway() web {
	r.T.Helper()
	contract, err := apitest.Current()
	require.NoError(r.T, err)
	return web{r.WebAt(contract.Check, func(a auth.Authenticator) string {
		s, err := gateway.New(gateway.Config{Addr: "127.0.0.1:0", ReadyTimeout: maxWait}, gateway.Deps{
			Logger: zerolog.Nop(), Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Auth: a, Version: "test",
			Routes: map[string]gateway.Route{"/ws": gateway.Single(orbit.Dialect())},
		})
		r.Run(s, err)
		return "http://" + s.Addr().String()
	})}
}

// answerOf sends a request, which has to have the status, and returns the answer.
func answerOf[T any](w web, who, method, path, body string, status int) T {
	w.T.Helper()
	var out T
	a := w.Ask(who, method, path, body, &out)
	require.Equal(w.T, status, a.Status, a.Body)
	return out
}

func (w web) questions(who, query string) wire.QuestionList {
	w.T.Helper()
	return answerOf[wire.QuestionList](w, who, http.MethodGet, "/api/v1/questions"+query, "", http.StatusOK)
}

// asked waits until as many questions are listed, and returns them.
func (w web) asked(who, query string, n int) []wire.Question {
	w.T.Helper()
	var out []wire.Question
	require.Eventually(w.T, func() bool {
		out = w.questions(who, query).Questions
		return len(out) == n
	}, maxWait, tick, "%s%s: %v", who, query, out)
	return out
}

// planned has alice ask for a plan that she has to confirm, and returns its question.
func (r *rig) planned(w web) wire.Question {
	r.T.Helper()
	r.Command(cmd.Command{ID: "open", Service: cmd.Session, Verb: cmd.Open, Tenant: log.Tenant, Key: log.Entity, Principal: "alice"}, cmd.OpenSession{Dialect: "api"})
	r.Until(log, event.SessionCreated, 1)
	confirm := true
	r.Command(cmd.Command{ID: "m1", Service: cmd.Pipeline, Verb: cmd.SendMessage, Tenant: log.Tenant, Key: log.Entity, Principal: "alice"}, cmd.UserMessage{
		Content: "make slides", RunSpec: event.RunSpec{Mode: event.ModePlan, ConfirmPlan: &confirm},
	})
	events := r.Until(log, event.PlanStarted, 1)
	begun, err := event.As[event.PlanStartedData](events[len(events)-1])
	require.NoError(r.T, err)
	part := begun.Part
	r.append(log,
		event.JobStartedData{RunID: begun.RunID, ExecutionID: begun.ExecutionID, Attempt: 1, Worker: "w", Part: part},
		event.MessageStartedData{RunID: begun.RunID, MessageID: "a1", Attempt: 1, Role: event.RoleAssistant, Part: part},
		event.MessageCompletedData{RunID: begun.RunID, MessageID: "a1", Attempt: 1, Role: event.RoleAssistant, Content: `{"tasks":[{"id":"t1","title":"draw"},{"id":"t2","title":"write"}]}`, Part: part},
	)
	r.command(log, cmd.Pipeline, cmd.SettleJob, "ended", cmd.JobRef{RunID: begun.RunID, JobID: part.JobID})
	r.Until(log, event.InputRequested, 1)
	return w.asked("alice", "", 1)[0]
}

// TestAQuestionIsListedAndAnsweredOverHTTP: a plan waits for a person. Principals that see its session see it; one
// answer counts, a repeat of it has the same response, and later senders learn which it was.
func TestAQuestionIsListedAndAnsweredOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	q := r.planned(w)
	require.Equal(t, "plan session s1 alice make slides", strings.Join([]string{q.Scope, q.Kind, q.LogID, q.Principal, q.Title}, " "))
	require.Len(t, q.Steps, 2)
	require.Equal(t, "session.s1."+q.InputID, q.ID)
	require.Empty(t, w.questions("bob", "").Questions, "another user's session")
	require.Empty(t, w.questions("eve", "").Questions, "another tenant's")
	require.Len(t, w.questions("vera", "?scope=plan&kind=session&log=s1").Questions, 1)
	require.Empty(t, w.questions("olga", "?scope=tool").Questions)
	for _, bad := range []string{"?scope=x", "?state=x", "?kind=team", "?before=x", "?limit=0", "?limit=201"} {
		require.Equal(t, 422, w.Ask("alice", "GET", "/api/v1/questions"+bad, "", nil).Status, bad)
	}

	path := "/api/v1/questions/" + q.ID + "/answer"
	for _, who := range []string{"bob", "eve"} {
		problem := answerOf[wire.Problem](w, who, "POST", path, `{"decision":"approve"}`, 404)
		require.Equal(t, string(fault.NotFound), problem.Title)
	}
	answerOf[wire.Problem](w, "vera", "POST", path, `{"decision":"approve"}`, 403)
	for body, field := range map[string]string{
		`{"decision":"maybe"}`: "decision", `{"decision":"modify"}`: "decision", `{"decision":"approve","steps":[]}`: "decision", `{"decision":"reject","arguments":{}}`: "decision",
		`{"decision":"modify","tasks":[]}`: "tasks", `{"decision":"modify","modified_tasks":[]}`: "modified_tasks", // the former names
	} {
		require.Equal(t, field, answerOf[wire.Problem](w, "alice", "POST", path, body, 422).Field, body)
	}
	for _, unknown := range []string{"x", "team.s1." + q.InputID, "session.none." + q.InputID, "session.s1.none.more"} {
		answerOf[wire.Problem](w, "alice", "POST", "/api/v1/questions/"+unknown+"/answer", `{"decision":"approve"}`, 404)
	}
	answerOf[wire.Problem](w, "alice", "POST", "/api/v1/questions/session.s1.none/answer", `{"decision":"approve"}`, 422)

	invalid := `{"id":"phone-0","decision":"modify","steps":[]}`
	for range 2 {
		require.Equal(t, string(fault.PlanInvalid), answerOf[wire.Problem](w, "alice", "POST", path, invalid, 422).Title)
	}
	const answer = `{"id":"phone-1","decision":"modify","steps":[{"id":"t2","title":"write"}],"feedback":"no pictures","client_id":"phone"}`
	first := answerOf[wire.QuestionOutcome](w, "alice", "POST", path, answer, 200)
	require.Equal(t, "modify alice phone", strings.Join([]string{first.Decision, first.AnsweredBy, first.AnsweredOn}, " "))
	require.NotZero(t, first.Seq)
	require.Equal(t, first, answerOf[wire.QuestionOutcome](w, "alice", "POST", path, answer, 200))
	late := answerOf[wire.Problem](w, "olga", "POST", path, `{"id":"phone-1x","decision":"reject"}`, 409)
	require.Equal(t, "INPUT_ANSWERED alice phone modify", strings.Join([]string{late.Title, late.AnsweredBy, late.AnsweredOn, late.Decision}, " "))
	events := r.Until(log, event.StepStarted, 1)
	begun, err := event.As[event.StepStartedData](events[len(events)-1])
	require.NoError(t, err)
	require.Equal(t, "t2", begun.Step.ID)

	over := w.asked("alice", "?state=answered", 1)[0]
	require.Equal(t, "answered modify alice phone", strings.Join([]string{over.State, over.Decision, over.AnsweredBy, over.AnsweredOn}, " "))
	w.asked("alice", "", 0)
	r.command(log, cmd.Session, cmd.Delete, "d1", nil)
	w.asked("olga", "?state=answered", 0)
}

// TestAnApprovalOverTheAPIIsForTheCallThatIsShown: the list shows the digest of the arguments that it shows, whatever the
// question says. An approval with another digest is refused, and one that names none is for exactly the shown call.
func TestAnApprovalOverTheAPIIsForTheCallThatIsShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	r.Command(cmd.Command{ID: "open", Service: cmd.Session, Verb: cmd.Open, Tenant: log.Tenant, Key: log.Entity, Principal: "alice"}, cmd.OpenSession{Dialect: "api"})
	r.Until(log, event.SessionCreated, 1)
	r.Command(cmd.Command{ID: "m1", Service: cmd.Pipeline, Verb: cmd.SendMessage, Tenant: log.Tenant, Key: log.Entity, Principal: "alice"}, cmd.UserMessage{Content: "pay"})
	events := r.Until(log, event.RunStarted, 1)
	run, err := event.As[event.RunStartedData](events[len(events)-1])
	require.NoError(t, err)
	shown, other := event.CallDigest("pay", []byte(`{"n":1}`)), event.CallDigest("pay", []byte(`{"n":1000}`))
	asks := func(call, digest string) event.Data {
		return event.InputRequestedData{
			InputID: "approve_" + call, RunID: run.RunID, ExecutionID: run.ExecutionID, Scope: event.ScopeTool, CallID: call, Attempt: 1,
			Tool: "pay", Arguments: []byte(`{"n":1}`), Digest: digest, Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		}
	}
	calls := []event.ToolCall{{ID: "c0", Name: "pay"}, {ID: "c1", Name: "pay"}, {ID: "c2", Name: "pay"}}
	for i := range calls {
		calls[i].Arguments = []byte(`{"n":1}`)
	}
	r.append(log,
		event.JobStartedData{RunID: run.RunID, ExecutionID: run.ExecutionID, Attempt: 1, Worker: "w"},
		event.MessageStartedData{RunID: run.RunID, MessageID: "a1", Attempt: 1, Role: event.RoleAssistant},
		event.MessageCompletedData{RunID: run.RunID, MessageID: "a1", Attempt: 1, Role: event.RoleAssistant, ToolCalls: calls},
		asks("c0", shown), asks("c1", shown), asks("c2", other),
	)
	w.asked("alice", "", 3)
	list := w.asked("alice", "?limit=1", 1)
	require.Equal(t, "approve_c2 "+shown, list[0].InputID+" "+list[0].Digest)
	next := w.questions("alice", "?limit=1").Next
	older := w.questions("alice", "?limit=1&before="+next)
	require.Equal(t, "approve_c1", older.Questions[0].InputID)
	require.False(t, w.questions("alice", "?limit=1&before="+older.Next).More)

	path := "/api/v1/questions/session.s1.approve_c1/answer"
	require.Contains(t, answerOf[wire.Problem](w, "alice", "POST", path, `{"id":"1","decision":"approve","digest":"`+other+`"}`, 422).Detail, "does not match the call")
	out := answerOf[wire.QuestionOutcome](w, "alice", "POST", path, `{"id":"1","decision":"approve","digest":"`+shown+`"}`, 200)
	require.Equal(t, "approve alice", out.Decision+" "+out.AnsweredBy)
	captured := "/api/v1/questions/session.s1.approve_c2/answer"
	answerOf[wire.Problem](w, "alice", "POST", captured, `{"id":"1","decision":"approve"}`, 422)
	answerOf[wire.QuestionOutcome](w, "alice", "POST", captured, `{"id":"1","decision":"reject","feedback":"no"}`, 200)

	edited := "/api/v1/questions/session.s1.approve_c0/answer"
	require.Contains(t, string(w.asked("alice", "?scope=tool", 1)[0].Parameters), `"n"`)
	for id, body := range map[string]string{"a": `{"n":"many"}`, "b": `[]`} {
		problem := answerOf[wire.Problem](w, "alice", "POST", edited, `{"id":"`+id+`","decision":"modify","arguments":`+body+`}`, 422)
		require.Equal(t, "INVALID_FIELD arguments", problem.Title+" "+problem.Field, problem.Detail)
	}
	require.Contains(t, answerOf[wire.Problem](w, "alice", "POST", edited, `{"id":"c","decision":"modify","arguments":{"n":2},"digest":"`+other+`"}`, 422).Detail, "does not match the call")
	out = answerOf[wire.QuestionOutcome](w, "alice", "POST", edited, `{"id":"d","decision":"modify","arguments":{"n":2},"digest":"`+shown+`"}`, 200)
	require.Equal(t, "modify alice", out.Decision+" "+out.AnsweredBy)
	events = r.Until(log, event.InputAnswered, 3)
	answer, err := event.As[event.InputAnsweredData](events[len(events)-1])
	require.NoError(t, err)
	require.JSONEq(t, `{"n":2}`, string(answer.Arguments))
	require.Nil(t, w.asked("alice", "?state=answered&scope=tool", 3)[0].Parameters, "nobody changes them any more")
}

// TestOperatorsHaveTheIndexMadeAnew: of the sessions of their tenant.
func TestOperatorsHaveTheIndexMadeAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	q := r.planned(w)
	path := "/api/v1/reindex"
	for _, who := range []string{"alice", "vera"} {
		answerOf[wire.Problem](w, who, "POST", path, `{"kind":"session"}`, 403)
	}
	for body, field := range map[string]string{`{}`: "kind", `{"kind":"team"}`: "kind", `{"kind":"session","after":"x"}`: "after"} {
		require.Equal(t, field, answerOf[wire.Problem](w, "olga", "POST", path, body, 422).Field, body)
	}
	require.NoError(t, r.Conn.Purge(t.Context(), subject.StreamIndex, log.Questions("*")))
	require.Empty(t, w.questions("alice", "").Questions)
	out := answerOf[wire.Reindexed](w, "olga", "POST", path, `{"kind":"session"}`, 200)
	require.EqualValues(t, 1, out.Logs)
	require.Positive(t, out.Written)
	require.Empty(t, out.Next)
	require.Equal(t, []wire.Question{q}, w.questions("alice", "").Questions)
	answerOf[wire.Problem](w, "olga", "POST", path, `{"kind":"task"}`, 503)
}
