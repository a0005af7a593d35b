package conversation_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// foldOf folds a log into a state that keeps so many bytes of finished runs.
func foldOf(t require.TestingT, events []event.Event, keep int) *conversation.State {
	s := &conversation.State{}
	s.Keep(keep)
	for _, e := range events {
		require.NoError(t, s.Apply(e))
	}
	return s
}

func storedOf(t require.TestingT, s *conversation.State) []byte {
	raw, err := s.Store()
	require.NoError(t, err)
	return raw
}

// goesOn checks that the state after any event, stored and loaded, becomes that of the whole log, whatever it keeps.
func goesOn(t *rapid.T, events []event.Event) {
	keep := rapid.SampledFrom([]int{0, -1, 1, 1500, 6000}).Draw(t, "kept")
	cut := rapid.IntRange(1, len(events)).Draw(t, "cut")
	before := foldOf(t, events[:cut], keep)
	s, err := conversation.Load(storedOf(t, before))
	require.NoError(t, err)
	require.Equal(t, before, s, "loaded after event %d", cut)
	for _, e := range events[cut:] {
		require.NoError(t, s.Apply(e))
	}
	whole := foldOf(t, events, keep)
	require.Equal(t, whole, s)
	require.Equal(t, string(storedOf(t, whole)), string(storedOf(t, s)))
}

func TestAnyStoredStateOfASessionGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t)}
		c.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		t.Repeat(map[string]func(*rapid.T){
			"message": c.message, "respond": c.respond, "control": c.control, "work": c.work, "work2": c.work, "work3": c.work, "time": c.time,
		})
		goesOn(t, c.log)
		c.drain(t)
		goesOn(t, c.log)
		c.export(t)
		c.message(t)
		goesOn(t, c.log)
	})
}

// export restores the session from its own export.
func (c *chaos) export(t *rapid.T) {
	whole := foldOf(t, c.log, -1)
	raw, err := json.Marshal(whole.Snapshot(1 << 20))
	require.NoError(t, err)
	c.append("restored", event.SessionRestoredData{Dialect: "myagent", Principal: "alice", State: raw})
}

func TestAnyStoredStateOfAMemberGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &member{world: newWorld(t), sent: map[string]bool{}}
		m.from = command.Member
		m.issue(t, command.CreateMember, event.MemberCreatedData{
			MemberID: "a", TeamID: "t", MemberDefinition: event.MemberDefinition{Name: "Coder"},
		})
		t.Repeat(map[string]func(*rapid.T){
			"message": m.message, "respond": m.respond, "race": m.race, "control": m.control,
			"work": m.work, "work2": m.work, "work3": m.work, "work4": m.work, "todos": m.note,
		})
		m.redeliver() // the first command of all may have died before its first event
		goesOn(t, m.log)
		m.drain(t)
		goesOn(t, m.log)
	})
}

// note has the member change its list of things to do.
func (m *member) note(t *rapid.T) {
	call := fmt.Sprint("note", m.commands)
	m.issue(t, command.NoteTodos, event.TodosUpdatedData{CallID: call, Todos: []event.Todo{{Description: call}}})
}

// chat appends a run with a tool call, as a worker writes it.
func (w *world) chat(n int, text, result string) {
	run, exec := conversation.RunID(fmt.Sprint("m", n)), fmt.Sprintf("exec_20260102_030405_%06d", n)
	call := event.ToolCall{ID: fmt.Sprint("call", n), Name: "search", Arguments: json.RawMessage(`{"q":"<a & b>"}`)}
	say := func(kind string, d event.Data) { w.append(fmt.Sprint(kind, n), d) }
	cost := 0.01
	say("received", event.MessageReceivedData{MessageID: fmt.Sprint("m", n), RunID: run, Content: "what about " + text, RunSpec: event.RunSpec{Mode: event.ModeChat}})
	say("started", event.RunStartedData{RunID: run, ExecutionID: exec, Budget: &event.Budget{Seconds: 60}})
	say("claim", event.JobStartedData{RunID: run, ExecutionID: exec, Attempt: 1, Worker: "w1", CommandID: "2026"})
	say("begins", event.MessageStartedData{MessageID: fmt.Sprint("a", n), RunID: run, ExecutionID: exec, Attempt: 1})
	say("delta", event.MessageDeltaData{MessageID: fmt.Sprint("a", n), RunID: run, ExecutionID: exec, Text: "let me see"})
	say("asks", event.MessageCompletedData{MessageID: fmt.Sprint("a", n), RunID: run, ExecutionID: exec, Attempt: 1, Content: "let me see", ToolCalls: []event.ToolCall{call}})
	say("usage", event.UsageRecordedData{RunID: run, ExecutionID: exec, MessageID: fmt.Sprint("a", n), InputTokens: 10, OutputTokens: 3, CostUSD: &cost})
	say("called", event.ToolCalledData{RunID: run, CallID: call.ID, Tool: "search", Arguments: call.Arguments, Attempt: 1})
	say("result", event.ToolCompletedData{RunID: run, CallID: call.ID, Attempt: 1, Result: result})
	say("answer", event.MessageCompletedData{MessageID: fmt.Sprint("b", n), RunID: run, ExecutionID: exec, Attempt: 1, Content: text})
	say("completed", event.RunCompletedData{RunID: run, ExecutionID: exec, Attempt: 1, MessageID: fmt.Sprint("b", n), Content: text})
}

// Arguments of tools are stored as the model wrote them.
func TestAStoredStateHoldsWhatModelsWrote(t *testing.T) {
	w := newWorld(t)
	w.append("created", event.SessionCreatedData{Dialect: "orbit"})
	w.chat(0, "<\u2028>", "y")
	w.append("called", event.ToolCalledData{RunID: conversation.RunID("m0"), CallID: "c", Tool: "search", Arguments: json.RawMessage("{\"q\":1,\"q\":\"\x7f\"}"), Attempt: 1})
	s, err := conversation.Load(storedOf(t, &w.state))
	require.NoError(t, err)
	require.Equal(t, &w.state, s)
	require.Equal(t, "{\"q\":1,\"q\":\"\x7f\"}", string(s.Call("c").Arguments))
}

// However long a chat is, its state and what it takes to store it are bounded, and the model gets the newest part of it.
func TestTheStateOfALongChatIsBounded(t *testing.T) {
	w := newWorld(t)
	w.append("created", event.SessionCreatedData{Dialect: "orbit", Principal: "alice"})
	random := rand.New(rand.NewPCG(1, 2))
	words := func() string {
		var b strings.Builder
		for range 35 {
			fmt.Fprintf(&b, "%x ", random.IntN(1<<20)) // harder to compress than words
		}
		return b.String()
	}
	const runs = 3640
	for n := range runs {
		w.chat(n, words(), words())
		if n == 909 || n == runs-1 { // 10,000 and 40,000 events
			raw := storedOf(t, &w.state)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, err := z.Write(raw)
			require.NoError(t, errors.Join(err, z.Close()))
			t.Logf("%d events: %d runs kept, %d bytes stored, %d packed", len(w.log), len(w.state.Runs()), len(raw), packed.Len())
			require.Less(t, packed.Len(), 512<<10)
		}
	}
	require.Less(t, len(w.state.Runs()), 700)

	w.append("next", event.MessageReceivedData{MessageID: "next", RunID: "next", Content: "and now?", RunSpec: event.RunSpec{Mode: event.ModeChat}})
	w.append("go", event.RunStartedData{RunID: "next", ExecutionID: "exec_20260102_030406_000000"})
	got := w.state.Brief("next", 256<<10)
	whole := foldOf(t, w.log, -1).Brief("next", 256<<10)
	require.Equal(t, whole.History[len(whole.History)-len(got.History):], got.History)
	require.Equal(t, runs, got.Dropped+(len(got.History)-1)/4, "every exchange is there or counted as left out")
	size := 0
	for _, l := range got.History {
		size += len(l.Content)
	}
	require.Greater(t, size, 200<<10, "most of what the model may have")
}

// A person can repeat a message, and a late worker may write, long after the run is forgotten.
func TestForgottenRunsStayDone(t *testing.T) {
	w := newWorld(t)
	w.state.Keep(1)
	w.append("created", event.SessionCreatedData{Dialect: "orbit", Principal: "alice"})
	require.False(t, w.state.Forgot())
	for n := range 3 {
		w.chat(n, "x", "y")
	}
	require.True(t, w.state.Forgot())
	first := conversation.RunID("m0")
	require.Nil(t, w.state.Run(first))
	require.Nil(t, w.state.Call("call0"))
	require.Zero(t, w.do(command.SendMessage, "m0", command.UserMessage{Content: "what about x"}), "it is the same message")
	w.append("late", event.AttemptRefusedData{RunID: first, Attempt: 1, Current: 2})
	w.append("later", event.ToolCalledData{RunID: first, CallID: "call0", Tool: "search"})
	w.append("latest", event.ToolFailedData{RunID: first, CallID: "call0", Message: "no"})
	require.Nil(t, w.state.Call("call0"))
	require.Zero(t, w.do(command.Cancel, "c", command.CancelRun{RunID: first}))
}

// The steps of a plan can be restarted however much was said after it.
func TestAStepIsRestartedAfterAForgottenPlan(t *testing.T) {
	for _, keep := range []int{-1, 1} {
		w := newWorld(t)
		w.state.Keep(keep)
		w.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		w.do(command.SendMessage, "plan", command.UserMessage{Content: "do", RunSpec: event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "t1", Title: "T"}}}})
		u := w.state.Unclaimed()[0]
		w.append("claim", event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Part: u.Part})
		w.append("said", event.MessageCompletedData{RunID: u.RunID, MessageID: "r", Attempt: 1, Content: "result", Part: u.Part})
		w.do(command.SettleJob, "settle", command.JobRef{RunID: u.RunID, JobID: u.Part.JobID})
		require.Nil(t, w.state.Active())
		for n := range 3 {
			w.chat(n, "x", "y")
		}
		require.Equal(t, keep > 0, w.state.Run(conversation.RunID("plan")) == nil)
		s, err := conversation.Load(storedOf(t, &w.state))
		require.NoError(t, err)
		w.state = *s
		require.Positive(t, w.do(command.RestartStep, "again", command.StepRef{StepID: "t1"}))
		r := w.state.Active()
		require.NotNil(t, r)
		require.Equal(t, "do", r.Content)
		require.Equal(t, 2, r.Plan.Step("t1").Attempt)
	}
}

// A state that is damaged, or of another version, is refused.
func TestADamagedStateIsNone(t *testing.T) {
	w := newWorld(t)
	w.append("created", event.SessionCreatedData{Dialect: "orbit", Principal: "alice"})
	w.chat(0, "x", "y")
	raw := string(storedOf(t, &w.state))
	_, err := conversation.Load([]byte(raw))
	require.NoError(t, err)
	version := fmt.Sprintf(`"Version":%d`, conversation.FoldVersion)
	require.Contains(t, raw, version)
	for _, damaged := range []string{
		"", "{}", raw[:len(raw)/2], strings.Replace(raw, version, `"Version":9999`, 1),
		strings.Replace(raw, `"Timed":"run_`, `"Timed":"other_`, 1), strings.Replace(raw, `"Known":"`, `"Known":"AAAA`, 1),
	} {
		require.NotEqual(t, raw, damaged)
		_, err := conversation.Load([]byte(damaged))
		require.Error(t, err)
	}
}

// A state remembers the ids of the newest messages.
func TestTheOldestMessagesAreForgottenLast(t *testing.T) {
	w := newWorld(t)
	w.append("created", event.SessionCreatedData{Dialect: "orbit", Principal: "alice"})
	refused := func(n int) { w.append(fmt.Sprint("no", n), event.MessageRefusedData{MessageID: fmt.Sprint("m", n)}) }
	const most = 1 << 14
	for n := range most + 1 {
		refused(n)
	}
	repeated := func(id string) bool { return w.do(command.SendMessage, id, command.UserMessage{Content: "x"}) == 0 }
	require.True(t, repeated("m1"))
	require.True(t, repeated(fmt.Sprint("m", most)))
	require.False(t, repeated("m0"))
	require.Less(t, len(storedOf(t, &w.state)), 256<<10)
	require.True(t, slices.ContainsFunc(w.state.Runs(), func(r *conversation.Run) bool { return r.MessageID == "m0" }))
}
