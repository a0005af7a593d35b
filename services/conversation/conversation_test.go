package conversation_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

const ttl = time.Hour

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}

// world is a log with its fold, a clock, and everything that the checks compare.
type world struct {
	t      require.TestingT
	state  conversation.State
	log    []event.Event
	now    time.Time
	direct event.Data // of the command handled last
	from   id.Name    // the service that decides; zero: the pipeline service
}

func newWorld(t require.TestingT) *world {
	return &world{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (w *world) append(eventID string, d event.Data) {
	e, err := event.New(log, eventID, "test", w.now, d)
	require.NoError(w.t, err)
	e.Sequence = uint64(len(w.log) + 1)
	w.log = append(w.log, e)
	require.NoError(w.t, w.state.Apply(e))
}

// rules are those of the tests.
var rules = conversation.Rules{
	TTL: ttl, ConfirmTimeout: 5 * time.Minute, OnBusy: event.OnBusyReject, MaxConcurrent: 3,
	StepTimeout: time.Minute, Tries: 3, Replans: 2, Backoff: 2 * time.Second, Fits: schema.Fits,
}

// do handles a command as the service does: until it calls for nothing more.
func (w *world) do(verb id.Name, commandID string, data any) int {
	n, whole := w.try(w.command(verb, commandID, data), 1<<30)
	require.True(w.t, whole)
	return n
}

func (w *world) command(verb id.Name, commandID string, data any) command.Command {
	raw, err := json.Marshal(data)
	require.NoError(w.t, err)
	service := w.from
	if service == (id.Name{}) {
		service = command.Pipeline
	}
	return command.Command{
		ID: commandID, Service: service, Verb: verb, Tenant: log.Tenant, Key: log.Entity,
		Time: w.now, Data: raw, Principal: "alice",
	}
}

// try handles a command until it calls for nothing more, or the service dies after
// so many events. It returns how many were appended and whether it lived.
func (w *world) try(c command.Command, dies int) (n int, whole bool) {
	for round := 0; ; round++ {
		got, err := w.state.Decide(c, w.now, rules)
		require.NoError(w.t, err)
		if round == 0 {
			w.direct = got.Direct
		}
		if len(got.Facts) == 0 {
			return n, true
		}
		for _, f := range got.Facts {
			if n == dies {
				return n, false
			}
			n++
			require.Less(w.t, n, 1000, "a command must come to an end")
			w.append(f.ID, f.Data)
		}
	}
}

func TestMessagesTakeTurns(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "c0", command.OpenSession{Dialect: "orbit"})
	w.do(command.SendMessage, "c1", command.UserMessage{Content: "one"})
	w.do(command.SendMessage, "c2", command.UserMessage{Content: "two"})
	first, second := conversation.RunID("c1"), conversation.RunID("c2")
	require.Equal(t, conversation.Running, w.state.Run(first).Status)
	require.Equal(t, conversation.Queued, w.state.Run(second).Status)
	require.Regexp(t, `^exec_20260102_030405_000000$`, w.state.Run(first).ExecutionID)

	w.append("x", event.RunCompletedData{RunID: first, Content: "1"})
	require.Equal(t, 1, w.do(command.SettleJob, first+".ended", command.JobRef{RunID: first}))
	require.Equal(t, conversation.Running, w.state.Run(second).Status)
	require.Regexp(t, `^exec_20260102_030405_000001$`, w.state.Run(second).ExecutionID,
		"two runs within one microsecond have different ids")
}

func TestQueueIsBounded(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "c0", command.OpenSession{})
	for i := range conversation.MaxWaiting + 1 {
		w.do(command.SendMessage, fmt.Sprint("m", i), command.UserMessage{Content: "x"})
	}
	require.Equal(t, conversation.MaxWaiting, w.state.Waiting())
	w.do(command.SendMessage, "late", command.UserMessage{Content: "x"})
	last := w.log[len(w.log)-1]
	require.Equal(t, event.MessageRefused, last.Type)
	require.Zero(t, w.do(command.SendMessage, "late", command.UserMessage{Content: "x"}), "a repeat gets the stored outcome")
}

func TestCancelThenRepeatDoesNotCancelTheNextRun(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "c0", command.OpenSession{})
	w.do(command.SendMessage, "c1", command.UserMessage{Content: "one"})
	w.do(command.SendMessage, "c2", command.UserMessage{Content: "two"})
	require.Equal(t, 2, w.do(command.Cancel, "k", command.CancelRun{}), "cancels one and starts the other")
	require.Zero(t, w.do(command.Cancel, "k", command.CancelRun{}))
	require.Equal(t, conversation.RunID("c2"), w.state.Active().ID)
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "c0", command.OpenSession{})
	w.now = w.now.Add(ttl - time.Second)
	require.Zero(t, w.do(command.Expire, "e1", nil))
	w.now = w.now.Add(time.Second)
	require.Equal(t, 1, w.do(command.Expire, "e2", nil))
	require.True(t, w.state.Closed)
	w.do(command.SendMessage, "c1", command.UserMessage{Content: "too late"})
	require.Equal(t, event.MessageRefused, w.log[len(w.log)-1].Type)
}

func TestNextFollowsTheLog(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "c0", command.OpenSession{})
	w.do(command.SendMessage, "c1", command.UserMessage{Content: "one"})
	run := conversation.RunID("c1")
	require.Equal(t, conversation.ActionGenerate, w.state.Next(run).Kind)
	w.append("a", event.MessageStartedData{RunID: run, MessageID: "m1"})
	require.Equal(t, []string{"m1"}, w.state.Next(run).Discard)
	calls := []event.ToolCall{{ID: "t1", Name: "x", Arguments: json.RawMessage(`{}`)}, {ID: "t2", Name: "y", Arguments: json.RawMessage(`{}`)}}
	w.append("b", event.MessageCompletedData{RunID: run, MessageID: "m1", ToolCalls: calls})
	require.Equal(t, calls, w.state.Next(run).Calls)
	w.append("c", event.ToolCalledData{RunID: run, CallID: "t1"})
	w.append("d", event.ToolCompletedData{RunID: run, CallID: "t1", Result: "r"})
	require.Equal(t, calls[1:], w.state.Next(run).Calls)
	lines := w.said(run)
	require.Len(t, lines, 1, "a message whose calls are open is not shown to a model")
	w.append("e", event.ToolCalledData{RunID: run, CallID: "t2"})
	w.append("f", event.ToolUnknownData{RunID: run, CallID: "t2", Message: "?"})
	require.Equal(t, conversation.ActionGenerate, w.state.Next(run).Kind)
	lines = w.said(run)
	require.Len(t, lines, 4)
	require.True(t, lines[3].IsError)
	w.append("g", event.MessageCompletedData{RunID: run, MessageID: "m2", Content: "done"})
	require.Equal(t, "done", w.state.Next(run).Answer.Content)
}

func TestHistoryIsBounded(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "c0", command.OpenSession{})
	for i := range 5 {
		c := fmt.Sprint("c", i+1)
		w.do(command.SendMessage, c, command.UserMessage{Content: "0123456789"})
		w.append(c+"m", event.MessageCompletedData{RunID: conversation.RunID(c), MessageID: c, Content: "0123456789"})
		w.append(c+"e", event.RunCompletedData{RunID: conversation.RunID(c)})
	}
	b := w.state.Brief(conversation.RunID("c5"), 45)
	lines := append(b.History, b.Own...)
	require.Equal(t, 3, b.Dropped)
	require.Len(t, lines, 4)
}

// said is what the model is shown for a chat run.
func (w *world) said(run string) []conversation.Line {
	b := w.state.Brief(run, 1000)
	return append(b.History, b.Own...)
}

// TestAnyHistoryKeepsTheInvariants drives a session through random commands,
// repeats and worker steps.
func TestAnyHistoryKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.do(command.Open, "open", command.OpenSession{})
		var sent []func() int
		issue := func(f func() int) { sent = append(sent, f); f() }
		t.Repeat(map[string]func(*rapid.T){
			"message": func(*rapid.T) {
				c := fmt.Sprint("m", len(sent))
				issue(func() int { return w.do(command.SendMessage, c, command.UserMessage{Content: c}) })
			},
			"cancel": func(*rapid.T) {
				c := fmt.Sprint("k", len(sent))
				if w.state.Active() != nil {
					issue(func() int { return w.do(command.Cancel, c, command.CancelRun{}) })
				}
			},
			"repeat": func(t *rapid.T) {
				if len(sent) == 0 {
					t.Skip("this step needs an earlier command")
				}
				again := sent[rapid.IntRange(0, len(sent)-1).Draw(t, "which")]
				require.Zero(t, again(), "a repeated command changes nothing")
			},
			"work": func(t *rapid.T) { w.work(t) },
			"dead": func(*rapid.T) {
				if r := w.state.Active(); r != nil {
					issue(func() int {
						return w.do(command.AbandonJob, r.ID+".dead", command.AbandonedJob{JobRef: command.JobRef{RunID: r.ID}})
					})
				}
			},
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 5_000_000).Draw(t, "us")) * time.Microsecond)
			},
			"": w.check,
		})
	})
}

// work does one step of a worker for the active run.
func (w *world) work(t *rapid.T) {
	r := w.state.Active()
	if r == nil {
		return
	}
	n := len(w.log)
	ev := func(d event.Data) { w.append(fmt.Sprint("w", n), d) }
	if r.Attempt() == 0 || rapid.IntRange(0, 9).Draw(t, "takeover") == 0 {
		ev(event.JobStartedData{RunID: r.ID, Attempt: r.Attempt() + 1})
		return
	}
	switch st := w.state.Next(r.ID); st.Kind {
	case conversation.ActionDiscard:
		ev(event.MessageDiscardedData{RunID: r.ID, MessageID: st.Discard[0]})
	case conversation.ActionCalls:
		c := w.state.Call(st.Calls[0].ID)
		switch {
		case c == nil:
			ev(event.ToolCalledData{RunID: r.ID, CallID: st.Calls[0].ID})
		case rapid.Bool().Draw(t, "fails"):
			ev(event.ToolFailedData{RunID: r.ID, CallID: c.ID})
		default:
			ev(event.ToolCompletedData{RunID: r.ID, CallID: c.ID})
		}
	case conversation.ActionGenerate:
		m := fmt.Sprint("msg", n)
		if rapid.Bool().Draw(t, "dies") {
			ev(event.MessageStartedData{RunID: r.ID, MessageID: m})
			return
		}
		var calls []event.ToolCall
		for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
			calls = append(calls, event.ToolCall{ID: fmt.Sprint(m, "-", i)})
		}
		ev(event.MessageCompletedData{RunID: r.ID, MessageID: m, ToolCalls: calls})
	case conversation.ActionFinish:
		ev(event.RunCompletedData{RunID: r.ID, Content: st.Answer.Content})
		w.do(command.SettleJob, r.ID+".ended", command.JobRef{RunID: r.ID})
	case conversation.ActionNone:
		t.Fatal("an active run has something left to do")
	}
}

// check holds after every step, whatever came before.
func (w *world) check(t *rapid.T) {
	running, terminal := 0, map[string]int{}
	for _, r := range w.state.Runs() {
		if r.Status == conversation.Running {
			running++
		}
	}
	require.LessOrEqual(t, running, 1, "one run at a time")
	require.False(t, running == 0 && w.state.Waiting() > 0, "a waiting run has its turn when none is on")
	var started []string
	lastExec, ids := "", map[string]bool{}
	for _, e := range w.log {
		require.False(t, ids[e.ID], "event id %s is used twice", e.ID)
		ids[e.ID] = true
		var d struct {
			RunID       string `json:"run_id"`
			ExecutionID string `json:"execution_id"`
		}
		require.NoError(t, e.Decode(&d))
		if e.Type.Terminal() {
			terminal[d.RunID]++
			require.Equal(t, 1, terminal[d.RunID], "one terminal event per run")
		}
		if e.Type == event.RunStarted {
			started = append(started, d.RunID)
			require.Greater(t, d.ExecutionID, lastExec)
			lastExec = d.ExecutionID
		}
	}
	i := 0
	for _, r := range w.state.Runs() {
		if i < len(started) && started[i] == r.ID {
			i++
		}
	}
	require.Equal(t, len(started), i, "runs start in the order of their messages")
}

// FuzzApply: no event, however broken its data, makes the fold panic.
func FuzzApply(f *testing.F) {
	for _, info := range event.Catalogue {
		raw, err := json.Marshal(info.Data)
		require.NoError(f, err)
		f.Add(string(info.Type), raw)
	}
	f.Fuzz(func(_ *testing.T, typ string, data []byte) {
		var s conversation.State
		for range 2 {
			_ = s.Apply(event.Event{Type: event.Type(typ), Data: data})
			_ = s.Next("")
		}
	})
}
