package fold_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/internal/strictjson"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// FuzzRequests: whatever a client sends, in whatever thread, is a request or its own fault.
func FuzzRequests(f *testing.F) {
	threads := []*fold.Thread{fold.New(fold.V1)}
	for _, events := range written(f) {
		for cut := 1; cut <= len(events); cut += 3 {
			threads = append(threads, folded(events[:cut]))
		}
	}
	site := newSite(f, 3).live(40)
	for cut := 1; cut <= len(site); cut += 20 {
		teams := fold.Of(id.KindTeam, fold.V1)
		for _, e := range site[:cut] {
			teams.Take(e)
		}
		threads = append(threads, teams)
	}
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `{"threadId":"a","runId":"b","messages":[]}`,
		`{"threadId":"a","runId":"b","messages":[null,{}],"tools":[null],"context":[null],"resume":[null]}`,
		`{"threadId":"a","runId":"b","messages":[{"id":"m","role":"user","content":null},{"id":"n","role":"user","content":[null,{"type":"image","source":null}]}]}`,
		`{"threadId":"a","runId":"b","messages":[{"id":"t","role":"tool","toolCallId":"c1","content":"red"}],"resume":[{"interruptId":"q1","status":"resolved","payload":{"approved":true,"tasks":[{}],"modified":{"a":{}}}}]}`,
		`{"threadId":"a","runId":"m1","messages":[],"state":{},"forwardedProps":{"waggle":{"mode":"plan","budget":{"tokens":1}},"other":[1]}}`,
		`{"threadId":"a","runId":"b","messages":[],"forwardedProps":{"waggle":null}}`, `{"threadId":"a","runId":"b","messages":[],"forwardedProps":7}`,
		`{"threadId":"a","runId":"b","messages":[{"id":"n","role":"user","content":" \u00a0"},{"id":"o","role":"user","content":[{"type":"document","source":{"type":"data","value":"aGk=","mimeType":"text/plain"}}]}]}`,
		`{"resume":[{"interruptId":"q1","status":"cancelled"},{"interruptId":"q2","status":"resolved","payload":"x"}]}`,
		`{"threadId":"a","runId":"b","messages":[],"tools":[{"name":"x","description":"","parameters":"no"}]}`,
	} {
		f.Add([]byte(body))
	}
	mine := func(t *testing.T, err error) {
		var known *fault.Fault
		require.True(t, errors.As(err, &known), "%v", err)
		require.Less(t, fault.Lookup(known.Code).Status, 500, "%v", err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var given wire.Answers
		if err := strictjson.Decode(body, &given); err == nil {
			answers(t, threads, given, mine)
		}
		var in wire.Input
		if err := strictjson.Decode(body, &in); err != nil {
			mine(t, err)
			return
		}
		for _, to := range []input.To{{}, {Agent: "Painter"}, {Team: true}} {
			q, err := input.Check(in, to)
			if err != nil {
				mine(t, err)
				continue
			}
			require.True(t, json.Valid(q.Extra))
			for _, thread := range threads {
				requests(t, thread, q, mine)
			}
		}
	})
}

// requests gives a thread a request, and has it stop something.
func requests(t *testing.T, thread *fold.Thread, q input.Request, mine func(*testing.T, error)) {
	t.Helper()
	for _, in := range []wire.Cancel{{RunID: q.RunID, TaskID: q.ThreadID}, {Member: q.ThreadID}} {
		if _, err := thread.Stops(in); err != nil {
			mine(t, err)
		}
	}
	m, err := thread.Means(q)
	if err != nil {
		mine(t, err)
		return
	}
	for _, i := range m.Intents {
		_, err := json.Marshal(i.Data)
		require.NoError(t, err)
		require.NotEmpty(t, i.ID)
	}
}

// answers gives answers in all threads, whatever they ask.
func answers(t *testing.T, threads []*fold.Thread, given wire.Answers, mine func(*testing.T, error)) {
	t.Helper()
	if err := input.CheckResume(given.Resume); err != nil {
		mine(t, err)
		return
	}
	for _, thread := range threads {
		m, err := thread.Answers("a1", given.Resume, "")
		if err != nil {
			mine(t, err)
			continue
		}
		require.LessOrEqual(t, len(m.Intents)+len(m.Unknown), len(given.Resume))
	}
}
