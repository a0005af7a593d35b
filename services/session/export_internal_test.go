package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/session/seal"
)

var (
	testTenant = id.DefaultTenant
	testEntity = id.EntityFromExternal("s1")
	testTime   = time.Unix(1_700_000_000, 0).UTC()
	testKeys   = seal.Keys{bytes.Repeat([]byte("k"), seal.MinKey)}
)

// facts folds data into a log from the beginning.
func facts(t require.TestingT, data ...event.Data) *folded {
	var f folded
	for i, d := range data {
		e, err := event.New(sessionLog(testTenant, testEntity), fmt.Sprint("e", i), source, testTime, d)
		require.NoError(t, err)
		e.Sequence = uint64(i + 1)
		require.NoError(t, f.state.Apply(e))
		f.know(e)
	}
	return &f
}

// said is a run that answers a question.
func said(n int, question, answer string) []event.Data {
	run, message := fmt.Sprint("run_", n), fmt.Sprint("m", n)
	return []event.Data{
		event.MessageReceivedData{MessageID: message, RunID: run, Content: question},
		event.RunStartedData{RunID: run, ExecutionID: "exec_20240101_000000_000001", MessageID: message, Content: question},
		event.JobStartedData{RunID: run, Attempt: 1},
		event.MessageStartedData{RunID: run, MessageID: "a" + message, Attempt: 1},
		event.MessageCompletedData{RunID: run, MessageID: "a" + message, Attempt: 1, Role: event.RoleAssistant, Content: answer},
		event.RunCompletedData{RunID: run, MessageID: "a" + message, Content: answer},
	}
}

func testResponder() *responder {
	return &responder{keys: testKeys, now: func() time.Time { return testTime }}
}

func TestALargeConversationFitsAFrameWithItsNewestPart(t *testing.T) {
	list := []event.Data{event.SessionCreatedData{Dialect: "myagent"}}
	for n := range 60 {
		list = append(list, said(n, fmt.Sprint("question ", n, " ", strings.Repeat("\"<é\n", 400)), fmt.Sprint("answer ", n, " ", strings.Repeat("\\", 2000)))...)
	}
	d := testResponder()
	signed, err := d.sign(sessionLog(testTenant, testEntity), facts(t, list...), testTime)
	require.NoError(t, err)
	require.LessOrEqual(t, len(signed), MaxSigned)
	require.Greater(t, len(signed), MaxSigned/4, "the room is used")
	r, err := d.verify(cmd.ImportRequest{Tenant: testTenant, Signed: signed})
	require.NoError(t, err)
	snap, err := decodeSnapshot(r.data.State)
	require.NoError(t, err)
	require.Contains(t, snap.History[len(snap.History)-1].Content, "answer 59")
	require.NotContains(t, string(r.data.State), "question 0 ")
	require.Len(t, snap.Warnings, 1)
	require.Equal(t, snap.Warnings, r.data.Warnings)
	require.Equal(t, event.RoleUser, snap.History[0].Role)
	require.Equal(t, idle, r.data.Stage)
	require.False(t, r.goesOn)
}

func TestWhatMustBeThereMayBeTooMuch(t *testing.T) {
	f := facts(t, event.SessionCreatedData{Dialect: "myagent"},
		event.MessageReceivedData{MessageID: "m1", RunID: "run_1", Content: strings.Repeat("x", MaxSigned)})
	_, err := testResponder().sign(sessionLog(testTenant, testEntity), f, testTime)
	require.ErrorIs(t, err, fault.New(fault.StateTooBig))
}

func TestTheReadableStateIsTheOneOfTheProtocol(t *testing.T) {
	task := func(n string, deps ...string) event.Step {
		return event.Step{ID: "task_" + n, Title: "Task " + n, Description: strings.Repeat("é", 400), Dependencies: deps}
	}
	part := func(n string) event.Part {
		return event.Part{JobID: "w" + n, Stage: event.StageSolving, StepID: "task_" + n}
	}
	list := append([]event.Data{event.SessionCreatedData{Dialect: "myagent"}}, said(1, "hello", "hi")...)
	list = append(list,
		event.MessageReceivedData{MessageID: "m2", RunID: "run_2", Content: "make slides", RunSpec: event.RunSpec{Mode: event.ModePlan}},
		event.RunStartedData{RunID: "run_2", ExecutionID: "exec_20240101_000000_000002", MessageID: "m2", Content: "make slides", Mode: event.ModePlan},
		event.PlanStartedData{RunID: "run_2", PlanID: "p1", Number: 1, Question: "make slides", Part: event.Part{JobID: "w0", Stage: event.StagePlanning}},
		event.PlanCompletedData{RunID: "run_2", PlanID: "p1", Steps: []event.Step{task("1"), task("2", "task_1")}, Part: event.Part{JobID: "w0", Stage: event.StagePlanning}},
		event.StepStartedData{RunID: "run_2", Step: task("1"), Attempt: 1, Part: part("1")},
		event.StepCompletedData{RunID: "run_2", Attempt: 1, Output: "done", Part: part("1")},
		event.StepStartedData{RunID: "run_2", Step: task("2", "task_1"), Attempt: 1, Part: part("2")},
		event.JobStartedData{RunID: "run_2", Attempt: 1, Part: part("2")},
		event.MessageStartedData{RunID: "run_2", MessageID: "a2", Attempt: 1, Part: part("2")},
		event.MessageCompletedData{RunID: "run_2", MessageID: "a2", Attempt: 1, ToolCalls: []event.ToolCall{{ID: "c1", Name: "write", Arguments: []byte(`{}`)}}, Part: part("2")},
		event.ToolCalledData{RunID: "run_2", CallID: "c1", Tool: "write", Arguments: []byte(`{}`), Attempt: 1, Part: part("2")},
		event.ToolStartedData{RunID: "run_2", CallID: "c1", Tool: "write", Attempt: 1, Part: part("2")},
	)
	f := facts(t, list...)
	snap := f.state.Snapshot(maxMemoryBytes)
	raw, err := plainjson.Marshal(describe(&f.state, snap, maxMemoryBytes))
	require.NoError(t, err)
	cut := strings.Repeat("é", 250)
	require.JSONEq(t, `{
		"stage": "solving",
		"plan_context": {"question": "make slides", "status": "in_progress", "tasks": [
			{"id": "task_1", "title": "Task 1", "description": "`+cut+`", "status": "completed", "attempt": 1, "output": "done"},
			{"id": "task_2", "title": "Task 2", "description": "`+cut+`", "status": "running", "attempt": 1, "dependencies": ["task_1"]}
		]},
		"current_task_id": "task_2",
		"completed_task_ids": ["task_1"],
		"agent_state": {
			"llm_memory": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "make slides"}],
			"tool_state": {"calls": 1, "open": [{"id": "c1", "tool": "write", "status": "started"}]}
		}
	}`, string(raw))

	empty := facts(t, event.SessionCreatedData{Dialect: "myagent"})
	raw, err = plainjson.Marshal(describe(&empty.state, empty.state.Snapshot(maxMemoryBytes), maxMemoryBytes))
	require.NoError(t, err)
	require.JSONEq(t, `{"stage":"idle","plan_context":{"question":"","tasks":[],"status":"idle"},"current_task_id":null,
		"completed_task_ids":[],"agent_state":{"llm_memory":[],"tool_state":{"calls":0,"open":[]}}}`, string(raw))

	_, err = testResponder().sign(sessionLog(testTenant, testEntity), f, testTime)
	require.NoError(t, err)
	require.Contains(t, snap.Warnings[0], "Outcome unknown", "the tool may have had its effect")
}

func TestMemoryIsBounded(t *testing.T) {
	var snap conversation.Snapshot
	for n := range 150 {
		snap.History = append(snap.History, conversation.Line{Role: event.RoleUser, Content: fmt.Sprint(n)})
	}
	got := recall(snap, maxMemoryBytes)
	require.Len(t, got, maxMemory)
	require.Equal(t, "149", got[len(got)-1].Content)
	snap.History = append(snap.History, conversation.Line{
		Role: event.RoleAssistant, ToolCalls: []event.ToolCall{{ID: "c", Arguments: bytes.Repeat([]byte(" "), maxMemoryBytes-3)}},
	})
	require.Len(t, recall(snap, maxMemoryBytes), 2)
	require.Empty(t, recall(snap, 0))
	require.Equal(t, "a", clip("aéé", 2))
}

// TestKnowledgeOnlyGrowsOnTheWay: a session that goes from place to place, and has
// events at each, is known better at each, so that the next place takes it.
func TestKnowledgeOnlyGrowsOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := []*folded{{}, {}, {}}
		seqs := make([]uint64, len(places))
		put := func(at int, data event.Data) {
			seqs[at]++
			e, err := event.New(sessionLog(testTenant, testEntity), fmt.Sprint("e", seqs[at]), source, testTime, data)
			require.NoError(t, err)
			e.Sequence = seqs[at]
			if places[at].events == nil {
				places[at].events = map[string]bool{}
			}
			places[at].know(e)
		}
		put(0, event.SessionCreatedData{})
		now := 0
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				put(now, event.NoticeData{})
			}
			to := rapid.IntRange(0, len(places)-1).Draw(t, "to")
			if to == now {
				continue
			}
			known := places[now].upTo
			require.Less(t, places[to].upTo, known, "it is behind and takes the state")
			put(to, event.SessionRestoredData{ExportedSeq: known})
			require.Greater(t, places[to].upTo, known)
			now = to
		}
	})
}

// FuzzImport: whatever is signed by us or not, verifying never panics, and what is
// refused is refused with one of the two faults.
func FuzzImport(f *testing.F) {
	d := testResponder()
	good, err := d.sign(sessionLog(testTenant, testEntity), facts(f, event.SessionCreatedData{Dialect: "myagent"}), testTime)
	require.NoError(f, err)
	var s seal.Signed
	require.NoError(f, json.Unmarshal(good, &s))
	f.Add([]byte(good), false)
	f.Add([]byte(s.State), true)
	f.Add([]byte(`{"session_id":"a.b","tenant":"default"}`), true)
	f.Add([]byte(`{"session_id":"a","tenant":"default","snapshot":"{\"run\":{\"status\":\"running\"},\"queued\":[{}]}"}`), true)
	f.Fuzz(func(t *testing.T, body []byte, sign bool) {
		if sign {
			signed, err := testKeys.Seal(body, testTime)
			if err != nil {
				return
			}
			body = signed
		}
		r, err := d.verify(cmd.ImportRequest{Tenant: testTenant, Signed: body})
		if err != nil {
			var fl *fault.Fault
			require.ErrorAs(t, err, &fl)
			require.Contains(t, []fault.Code{fault.StateTampered, fault.StateExpired}, fl.Code)
			return
		}
		require.NotEmpty(t, r.log.Entity.String())
		e, err := event.New(r.log, r.eventID, source, testTime, r.data)
		require.NoError(t, err)
		e.Sequence = 1
		var st conversation.State
		require.NoError(t, st.Apply(e), "what was verified can be folded")
		st.Snapshot(maxMemoryBytes)
	})
}

func TestAHundredTasksThatNameEachOtherCanBeHashed(t *testing.T) {
	out := readable{}
	for n := range 100 {
		one := taskState{ID: fmt.Sprint(n)}
		for d := range n {
			one.Dependencies = append(one.Dependencies, fmt.Sprint(d))
		}
		one.Dependencies = append(one.Dependencies, make([]string, 100)...)
		out.Plan.Tasks = append(out.Plan.Tasks, one)
	}
	raw, err := plainjson.Marshal(out)
	require.NoError(t, err)
	_, err = seal.Hash(raw)
	require.NoError(t, err)
}
