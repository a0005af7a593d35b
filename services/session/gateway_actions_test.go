package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// named has alice name a session, and returns its log and the path of its requests.
func (w web) named(body string) (subject.Log, string) {
	w.T.Helper()
	name := answerOf[wire.SessionName](w, "alice", "POST", "/api/v1/sessions", body, 201).SessionID
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}, "/api/v1/sessions/" + name
}

// TestAMessageOverHTTP opens the session that only has a name, and starts a run. A repeat has the same response and starts no
// second one, within the time for which the bus drops repeats and after a restart of the services.
func TestAMessageOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	p := r.startPipeline("p")
	w := r.serveGateway()
	l, path := w.named(`{"language":"en_US","on_busy":"reject"}`)
	for body, field := range map[string]string{
		`{}`: "content", `{"content":" "}`: "content", `{"content":"x","mode":"dance"}`: "mode", `{"content":"x","steps":[{"title":"a"}]}`: "steps",
		`{"mode":"steps","tasks":[{"title":"a"}]}`: "tasks",
		`{"mode":"steps"}`:                         "steps", `{"mode":"steps","steps":[{"title":""}]}`: "steps[0].title", `{"mode":"steps","steps":[{"id":"a","title":"x"},{"id":"a","title":"y"}]}`: "steps[1].id",
		`{"mode":"steps","steps":[{"title":"x","dependencies":["none"]}]}`: "steps[0].dependencies", `{"content":"x","on_busy":"maybe"}`: "on_busy",
		`{"content":"x","max_concurrent":-1}`: "max_concurrent", `{"content":"x","budget":{"tokens":-1}}`: "budget",
		`{"content":"x","id":"` + strings.Repeat("i", 201) + `"}`: "id",
	} {
		require.Equal(t, field, answerOf[wire.Problem](w, "alice", "POST", path+"/messages", body, 422).Field, body)
	}
	answerOf[wire.Problem](w, "vera", "POST", path+"/messages", `{"content":"x"}`, 403)
	answerOf[wire.Problem](w, "bob", "POST", path+"/messages", `{"content":"x"}`, 404)
	answerOf[wire.Problem](w, "olga", "POST", path+"/messages", `{"content":"x"}`, 403)
	answerOf[wire.Problem](w, "alice", "POST", "/api/v1/sessions/never/messages", `{"content":"x"}`, 404)

	const body = `{"id":"m 1","content":"hello","client_id":"phone","budget":{"tokens":100}}`
	first := answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", body, 202)
	require.True(t, first.Accepted)
	require.NotEmpty(t, first.RunID)
	require.EqualValues(t, 2, first.Seq)
	for range 2 {
		require.Equal(t, first, answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", body, 202))
		p.Stop()
		p = r.startPipeline("p")
	}
	d, err := event.As[event.MessageReceivedData](r.All(l)[1])
	require.NoError(t, err)
	require.Equal(t, "hello alice phone 100", fmt.Sprint(d.Content, " ", d.Principal, " ", d.ClientID, " ", d.Budget.Tokens))
	require.Len(t, r.All(l), 3)

	busy := `{"id":"m2","mode":"plan","content":"now"}`
	for range 2 {
		require.Equal(t, string(fault.SessionBusy), answerOf[wire.Problem](w, "alice", "POST", path+"/messages", busy, 409).Title)
	}
	require.Len(t, r.All(l), 4)
}

// TestStepsOverHTTP: a step is cancelled and restarted, and a repeat has the response of the first and does it once.
func TestStepsOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	l, path := w.named(``)
	sent := answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", `{"mode":"steps","steps":[{"id":"t1","title":"one"},{"title":"two","dependencies":["t1"]}]}`, 202)
	r.untilTask(l, "t1")
	steps := path + "/runs/" + sent.RunID + "/steps/"
	same := func(path, body string) wire.Accepted {
		t.Helper()
		first := answerOf[wire.Accepted](w, "alice", "POST", path, body, 202)
		require.NotZero(t, first.Seq)
		caused := func() (n int) {
			for _, e := range r.All(l) {
				if strings.HasPrefix(e.ID, first.CommandID+".") {
					n++
				}
			}
			return n
		}
		r.settled() // the first event is enough for the response, and others may follow
		before := caused()
		require.Equal(t, first, answerOf[wire.Accepted](w, "alice", "POST", path, body, 202))
		require.Equal(t, before, caused(), "the repeat did nothing")
		return first
	}
	restarted := same(steps+"t1/restart", `{"id":"1","reason":"again"}`)
	require.Equal(t, sent.RunID, restarted.RunID)
	for none, code := range map[string]fault.Code{
		steps + "none/cancel": fault.TaskNotFound, steps + "none/restart": fault.TaskNotFound,
		path + "/runs/last/steps/none/restart": fault.TaskNotFound, path + "/runs/other/steps/t1/cancel": fault.RunNotFound, path + "/runs/other/steps/t1/restart": fault.RunNotFound,
	} {
		require.Equal(t, string(code), answerOf[wire.Problem](w, "alice", "POST", none, ``, 404).Title, none)
	}
	answerOf[wire.Problem](w, "bob", "POST", steps+"t1/cancel", ``, 404)
	answerOf[wire.Problem](w, "alice", "POST", steps+"t1/restart", `{"max_attempts":-1}`, 422)
	cancelled := same(steps+"t1/cancel", `{"id":"1"}`)
	require.Equal(t, sent.RunID, cancelled.RunID)
	r.Until(l, event.RunFailed, 1)
	repaired := same(path+"/runs/last/steps/t1/restart", `{"id":"2"}`)
	require.NotEqual(t, sent.RunID, repaired.RunID, "the run was over: a new one repairs it")
	require.Equal(t, string(fault.RunOver), answerOf[wire.Problem](w, "alice", "POST", steps+"t1/cancel", `{"id":"3"}`, 409).Title, "the old run")
}

// TestAPlanIsGivenUpOverHTTP while it is made, and once. A repeat has the response of the first.
func TestAPlanIsGivenUpOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	l, path := w.named(``)
	sent := answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", `{"mode":"plan","content":"make slides"}`, 202)
	r.Until(l, event.PlanStarted, 1)
	cancel := path + "/plan/cancel"
	answerOf[wire.Problem](w, "bob", "POST", cancel, ``, 404)
	answerOf[wire.Problem](w, "vera", "POST", cancel, ``, 403)
	require.Equal(t, "id", answerOf[wire.Problem](w, "alice", "POST", cancel, `{"id":"`+strings.Repeat("i", 201)+`"}`, 422).Field)
	first := answerOf[wire.Accepted](w, "alice", "POST", cancel, `{"id":"1"}`, 202)
	require.Equal(t, sent.RunID, first.RunID)
	r.Until(l, event.PlanCancelled, 1)
	require.Equal(t, first, answerOf[wire.Accepted](w, "alice", "POST", cancel, `{"id":"1"}`, 202))
	require.Equal(t, string(fault.RunOver), answerOf[wire.Problem](w, "alice", "POST", cancel, `{"id":"2","reason":"enough"}`, 409).Title)
	answerOf[wire.Problem](w, "alice", "POST", "/api/v1/sessions/never/plan/cancel", ``, 404)
}

// TestReplanOverHTTP: the active run makes another plan, and after its end a new run does.
func TestReplanOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	l, path := w.named(``)
	sent := answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", `{"mode":"plan","content":"make slides"}`, 202)
	r.Until(l, event.PlanStarted, 1)
	for n, again := range []string{`{"id":"1"}`, `{"id":"2","question":"make a film"}`} {
		first := answerOf[wire.Accepted](w, "alice", "POST", path+"/replan", again, 202)
		require.Equal(t, sent.RunID, first.RunID)
		require.NotZero(t, first.Seq)
		r.Until(l, event.PlanStarted, n+2)
		require.Equal(t, first, answerOf[wire.Accepted](w, "alice", "POST", path+"/replan", again, 202))
	}
	require.Equal(t, 200, w.Ask("alice", "POST", path+"/cancel", "", nil).Status)
	r.Until(l, event.RunCancelled, 1)
	anew := answerOf[wire.Accepted](w, "alice", "POST", path+"/replan", `{"id":"3","question":"a song"}`, 202)
	require.NotEqual(t, sent.RunID, anew.RunID)
	require.Equal(t, anew, answerOf[wire.Accepted](w, "alice", "POST", path+"/replan", `{"id":"3","question":"a song"}`, 202))
	require.Equal(t, string(fault.InvalidField), answerOf[wire.Problem](w, "alice", "POST", path+"/replan", `{"on_busy":"x"}`, 422).Title)
}

// TestASessionIsClosedOverHTTP: its run is stopped, it takes no message any more, its log stays, and a repeat changes nothing.
func TestASessionIsClosedOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	l, path := w.named(``)
	answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", `{"mode":"plan","content":"make slides"}`, 202)
	r.Until(l, event.PlanStarted, 1)
	answerOf[wire.Problem](w, "bob", "POST", path+"/close", ``, 404)
	answerOf[wire.Problem](w, "vera", "POST", path+"/close", ``, 403)
	answerOf[wire.Accepted](w, "alice", "POST", path+"/close", ``, 200)
	r.Until(l, event.SessionClosed, 1)
	answerOf[wire.Accepted](w, "alice", "POST", path+"/close", ``, 200)
	require.Equal(t, string(fault.SessionClosed), answerOf[wire.Problem](w, "alice", "POST", path+"/messages", `{"content":"again"}`, 410).Title)
	require.Equal(t, "closed", answerOf[wire.SessionDetail](w, "alice", "GET", path, ``, 200).Status)
}

// walk returns the seqs of all pages of a log in a direction.
func (w web) walk(path, direction, at, query string) (seqs []uint64) {
	w.T.Helper()
	for range 100 {
		page := answerOf[wire.LogPage](w, "alice", "GET", path+"/events?"+direction+"="+at+query, "", 200)
		var of []uint64
		for _, raw := range page.Events {
			var e event.Event
			require.NoError(w.T, json.Unmarshal(raw, &e))
			of = append(of, e.Sequence)
		}
		if direction == "before" {
			seqs = append(of, seqs...)
		} else {
			seqs = append(seqs, of...)
		}
		if !page.More {
			return seqs
		}
		at = page.Next
	}
	require.Fail(w.T, "the pages do not end")
	return nil
}

// TestLogsOverHTTP: pages in both directions, with filters, for the principals that see the log.
func TestLogsOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	w := r.serveGateway()
	r.Command(cmd.Command{ID: "open", Service: cmd.Session, Verb: cmd.Open, Tenant: log.Tenant, Key: log.Entity, Principal: "alice"}, cmd.OpenSession{Dialect: "api"})
	r.Until(log, event.SessionCreated, 1)
	var data []event.Data
	for i := range 40 {
		run := fmt.Sprint("r", i%2)
		data = append(data, event.RunStartedData{RunID: run, ExecutionID: "x"}, event.MessageDeltaData{RunID: run, MessageID: "m", Text: "t"}, event.RunCompletedData{RunID: run})
	}
	r.append(log, data...)
	const path, last = "/api/v1/logs/session/s1", 121
	head := answerOf[wire.LogHead](w, "alice", "GET", path+"/head", "", 200)
	require.Equal(t, "session s1 1 121 run.completed", fmt.Sprint(head.Kind, " ", head.ID, " ", head.First, " ", head.Last, " ", head.LastType))
	for who, status := range map[string]int{"bob": 404, "eve": 404, "vera": 200, "mallory": 401} {
		require.Equal(t, status, w.Ask(who, "GET", path+"/head", "", nil).Status, who)
		require.Equal(t, status, w.Ask(who, "GET", path+"/events", "", nil).Status, who)
	}
	for _, none := range []string{"/api/v1/logs/session/none/head", "/api/v1/logs/inbox/s1/head", "/api/v1/logs/x/s1/events"} {
		answerOf[wire.Problem](w, "alice", "GET", none, "", 404)
	}
	for _, bad := range []string{"?after=122", "?before=123", "?after=x", "?after=1&before=2", "?limit=0", "?types=none"} {
		answerOf[wire.Problem](w, "alice", "GET", path+"/events"+bad, "", 422)
	}
	var all, ended, first []uint64
	for seq := uint64(1); seq <= last; seq++ {
		all = append(all, seq)
		if seq > 1 && (seq-2)%3 == 2 {
			ended = append(ended, seq)
		}
		if seq > 1 && (seq-2)/3%2 == 0 && (seq-2)%3 != 1 {
			first = append(first, seq)
		}
	}
	for _, limit := range []string{"7", "50", "1000"} {
		require.Equal(t, all, w.walk(path, "after", "0", "&limit="+limit))
		require.Equal(t, all, w.walk(path, "before", "122", "&limit="+limit))
		require.Equal(t, ended, w.walk(path, "before", "122", "&types=run.completed&limit="+limit))
		require.Equal(t, ended, w.walk(path, "after", "0", "&types=run.completed&limit="+limit))
		require.Equal(t, first, w.walk(path, "before", "122", "&run=r0&types=run.started,run.completed&limit="+limit))
	}
	newest := answerOf[wire.LogPage](w, "alice", "GET", path+"/events?before=122&limit=2", "", 200)
	require.Equal(t, "2 true 120", fmt.Sprint(len(newest.Events), " ", newest.More, " ", newest.Next))
	at := r.append(log, event.RunStartedData{RunID: "r9", ExecutionID: "x"})
	r.append(log, event.RunCompletedData{RunID: "r9"})
	r.expire(log, at)
	for _, query := range []string{"", "?before=124", "?after=5"} {
		page := answerOf[wire.LogPage](w, "vera", "GET", path+"/events"+query, "", 200)
		require.Len(t, page.Events, 1, query)
		require.EqualValues(t, 122, page.Expired, query)
	}
}

// TestMe says who the client is, and what it may do.
func TestMe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.serveGateway()
	for who, may := range map[string]string{"alice": "watch act", "vera": "watch", "olga": "watch act operate"} {
		me := answerOf[wire.Me](w, who, "GET", "/api/v1/me", "", 200)
		require.Equal(t, who+" default", me.Subject+" "+me.Tenant)
		require.Equal(t, may, strings.Join(me.May, " "))
		require.Len(t, me.Roles, 1)
	}
	answerOf[wire.Problem](w, "mallory", "GET", "/api/v1/me", "", 401)
}
