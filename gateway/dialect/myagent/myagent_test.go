package myagent_test

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/dialect/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// settings are the original server's.
var settings = myagent.Settings{ServerVersion: "1.0.0", SessionTTL: 24 * time.Hour, Heartbeat: 30 * time.Second, MaxConcurrentTasks: 10}

func suite(t testing.TB) dialecttest.Suite {
	t.Helper()
	examples, err := fs.Sub(wire.Examples, "examples")
	require.NoError(t, err)
	return dialecttest.Suite{
		Dialect:     myagent.Dialect(settings),
		Package:     "github.com/waggle-dev/waggle/gateway/dialect/myagent",
		Variants:    []url.Values{{}, {"language": {"en_US"}}},
		Transcripts: "testdata/transcripts",
		Schemas:     wire.Schemas,
		Examples:    examples,
		Inbound:     wire.Inbound,
		Outbound:    wire.Outbound,
		Kind:        "event",
		Accepted:    accepted,
		Unsaid:      unsaid,
	}
}

// unsaid are members of the original's examples that no frame has. The schemas say why.
var unsaid = []string{
	"system.connected session_id", "plan.start metadata.model", "plan.start metadata.temperature",
	"solver.completed content.result.artifacts", "solver.completed content.result.artifacts.type",
	"solver.completed content.result.artifacts.content", "solver.completed metadata.quality_score",
	"agent.tool_result metadata.result.items", "agent.tool_result metadata.result.count",
	"agent.partial_answer metadata.completion_percent", "agent.partial_answer metadata.model", "agent.partial_answer metadata.tokens_so_far",
	"error.timeout metadata.retry_after_ms",
}

// accepted are messages in the shapes of the three dialects that clients speak.
var accepted = []string{
	`{"event":"user.message","session_id":"s1","content":{"question":"hi"},"id":"m-1"}`,
	`{"event":"user.message","session_id":"s1","content":"hi","step_id":null,"metadata":{"message_id":"m/1","client_id":"c1","confirm_plan":true,"on_busy":"enqueue","max_concurrent":3,"parallelizable":false,"timeout_seconds":60,"tags":["a"]}}`,
	`{"event":"user.solve_tasks","session_id":"s1","content":{"tasks":{"id":7,"title":"One","notes":"n","insights":[1]}}}`,
	`{"event":"user.solve_tasks","session_id":"s1","content":{"question":"q","plan_summary":"p","tasks":[{"id":1,"title":"a","objective":"o"},{"id":"b","name":"B","description":"d","priority":2,"dependencies":[1],"capability":"code","context":{"k":1},"estimated_tokens":10,"estimated_time_seconds":3}]}}`,
	`{"event":"user.response","session_id":"s1","step_id":"confirm_plan_1a2b3c4d","content":{"confirmed":true,"tasks":[{"id":1,"title":"a"}]},"metadata":{"client_id":"c1"}}`,
	`{"event":"user.response","session_id":"s1","step_id":"p1","content":{"approved":false,"feedback":"no"}}`,
	`{"event":"user.cancel","session_id":"s1"}`,
	`{"event":"user.cancel_plan","session_id":"s1","metadata":{"reason":"r"}}`,
	`{"event":"user.cancel_task","session_id":"s1","content":{"task_id":2}}`,
	`{"event":"user.restart_task","session_id":"s1","content":{"task_id":"t"},"metadata":{"max_attempts":2}}`,
	`{"event":"user.replan","session_id":"s1","content":{"question":"another"},"metadata":{"confirm_plan":false}}`,
	`{"event":"user.replan","session_id":"s1","content":"another"}`,
	`{"event":"user.replan","session_id":"s1"}`,
	`{"event":"user.ack","session_id":"s1","content":{"last_seq":5,"client_id":"c1"}}`,
	`{"event":"user.ack","session_id":"s1","seq":5}`,
	`{"event":"user.ack","session_id":"s1","content":5}`,
	`{"event":"user.ack","content":{"last_event_id":"5.77"}}`,
	`{"event":"user.ack","session_id":"s1","metadata":{"last_event_id":"5","client_id":"c1"}}`,
	`{"event":"user.create_session"}`,
	`{"event":"user.create_session","content":{"client_id":"c1"},"metadata":{"confirm_plan":true,"on_busy":"interrupt","client_id":"c2"}}`,
	`{"event":"user.reconnect","session_id":"s1","last_seq":5}`,
	`{"event":"user.reconnect","content":{"session_id":"s1","last_seq":5}}`,
	`{"event":"user.reconnect_with_state","session_id":"s1","content":{"last_event_id":"5.77","batch":true,"merge":true,"client_id":"c1"}}`,
	`{"event":"user.reconnect_with_state","signed_state":{"state":{}},"last_event_id":"5"}`,
	`{"event":"user.reconnect_with_state","content":{"signed_state":{"state":{}},"last_seq":5}}`,
	`{"event":"user.request_state","session_id":"s1"}`,
}

func TestConformance(t *testing.T) { dialecttest.Exercise(t, suite(t)) }

func FuzzDecode(f *testing.F) { dialecttest.FuzzDecode(f, suite(f)) }

func FuzzEncode(f *testing.F) { dialecttest.FuzzEncode(f, suite(f)) }

// codec returns the variant for a language.
func codec(t testing.TB, language string) dialect.Sessions {
	t.Helper()
	c, err := myagent.Dialect(settings).Bind(url.Values{"language": {language}})
	require.NoError(t, err)
	s, ok := c.(dialect.Sessions)
	require.True(t, ok)
	return s
}

func TestBind(t *testing.T) {
	for language, want := range map[string]string{"": "myagent", "zh_CN": "myagent", "en_US": "myagent+en"} {
		require.Equal(t, want, codec(t, language).Name())
	}
	require.Equal(t, "myagent+en", codec(t, "").In("en_US").Name())
	_, err := myagent.Dialect(settings).Bind(url.Values{"language": {"tlh"}})
	require.ErrorIs(t, err, fault.New(fault.InvalidField))
}

// TestAnAcknowledgementHasManyShapes: all that clients send as an ack say the same.
func TestAnAcknowledgementHasManyShapes(t *testing.T) {
	for _, frame := range []string{
		`{"event":"user.ack","session_id":"s1","metadata":{"last_seq":50}}`,
		`{"event":"user.ack","session_id":"s1","content":{"last_seq":50}}`,
		`{"event":"user.ack","session_id":"s1","content":50}`,
		`{"event":"user.ack","session_id":"s1","seq":50}`,
		`{"event":"user.ack","session_id":"s1","seq":5e1}`,
		`{"event":"user.ack","session_id":"s1","seq":7,"metadata":{"last_seq":50.0}}`,
	} {
		r, err := codec(t, "").Request([]byte(frame))
		require.NoError(t, err, frame)
		require.Equal(t, dialect.Ack, r.Action)
		require.Equal(t, "s1", r.Session)
		require.Equal(t, uint64(50), *r.Acked.Seq, frame)
	}
	r, err := codec(t, "").Request([]byte(`{"event":"user.ack","content":{"last_event_id":"50.7"}}`))
	require.NoError(t, err)
	require.Equal(t, dialect.Request{Action: dialect.Ack, Acked: dialect.Position{EventID: "50.7"}}, r)
	_, err = codec(t, "").Request([]byte(`{"event":"user.ack","session_id":"s1","metadata":{"received_count":8}}`))
	require.ErrorIs(t, err, fault.New(fault.InvalidField))
}

// decoded returns the data of the one command that a frame means.
func decoded[T any](t *testing.T, frame string) T {
	t.Helper()
	in := dialect.Inbound{Session: dialecttest.Session, Now: dialecttest.Now, NewID: func() string { return "new-1" }}
	cmds, err := codec(t, "").Decode([]byte(frame), in)
	require.NoError(t, err)
	require.Len(t, cmds, 1)
	require.Equal(t, command.Pipeline, cmds[0].Service)
	var v T
	require.NoError(t, cmds[0].Decode(&v))
	return v
}

func TestTasksOfAllDialects(t *testing.T) {
	got := decoded[command.UserMessage](t, accepted[3])
	require.Equal(t, []event.Task{
		{ID: "1", Title: "a", Description: "o"},
		{
			ID: "b", Title: "B", Description: "d", Priority: 2, Dependencies: []string{"1"}, Capability: "code",
			Context: json.RawMessage(`{"k":1}`), EstimatedTokens: 10, EstimatedSeconds: 3,
		},
	}, got.Tasks)
	require.Equal(t, "q", got.Content)
	require.Equal(t, event.ModeTasks, got.Mode)

	got = decoded[command.UserMessage](t, accepted[2])
	require.Equal(t, "One", got.Content, "tasks without a question are known by their titles")
	require.JSONEq(t, `{"notes":"n","insights":[1]}`, string(got.Tasks[0].Extra))
}

func TestWhatComesWithAMessageStaysWithIt(t *testing.T) {
	got := decoded[command.UserMessage](t, accepted[1])
	yes := true
	require.Equal(t, event.RunSpec{
		Mode: event.ModePlan, ConfirmPlan: &yes, OnBusy: event.OnBusyEnqueue, MaxConcurrent: 1, TimeoutSeconds: 60, ClientID: "c1",
		Extra: json.RawMessage(`{"tags":["a"]}`),
	}, got.RunSpec)
}

func TestBothKindsOfAnswer(t *testing.T) {
	got := decoded[command.RespondInput](t, accepted[4])
	require.Equal(t, command.RespondInput{
		InputID: "confirm_plan_1a2b3c4d", Approved: true, Tasks: json.RawMessage(`[{"id":1,"title":"a"}]`), ClientID: "c1",
	}, got)
	got = decoded[command.RespondInput](t, `{"event":"user.response","session_id":"s1","step_id":"p","content":{"approved":false,"confirmed":true,"modified_tasks":"x"}}`)
	require.Equal(t, command.RespondInput{InputID: "p", Modified: json.RawMessage(`"x"`)}, got, "approved wins")
}

// TestAnExternalIDStaysTheSame: what cannot be a subject token is still the same command
// when it is sent again.
func TestAnExternalIDStaysTheSame(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		in := dialect.Inbound{Session: dialecttest.Session, Now: dialecttest.Now, NewID: func() string { return "new-1" }}
		cmds, err := codec(t, "").Decode([]byte(accepted[1]), in)
		require.NoError(t, err)
		ids[cmds[0].ID] = true
	}
	require.Len(t, ids, 1)
	require.NotContains(t, ids, "new-1")
}

// TestAWrongValueIsGivenBack: a client is told which field, which rule and which value.
func TestAWrongValueIsGivenBack(t *testing.T) {
	tasks := `[`
	for i := range 101 {
		if i > 0 {
			tasks += ","
		}
		tasks += `{"id":1,"title":"x"}`
	}
	tasks += `]`
	for frame, want := range map[string][2]string{
		`{"event":"user.message","session_id":"s1","content":"  "}`:                                              {"content", `"  "`},
		`{"event":"user.message","session_id":"s1"}`:                                                             {"content", ``},
		`{"event":"user.message","session_id":"s 1","content":"x"}`:                                              {"session_id", `"s 1"`},
		`{"event":"user.solve_tasks","session_id":"s1","content":{"tasks":[]}}`:                                  {"content.tasks", `0`},
		`{"event":"user.solve_tasks","session_id":"s1","content":{"tasks":` + tasks + `}}`:                       {"content.tasks", `101`},
		`{"event":"user.solve_tasks","session_id":"s1","content":{"tasks":[{"id":"a b","title":"x"}]}}`:          {"content.tasks[0].id", `"a b"`},
		`{"event":"user.message","session_id":"s1","content":"x","metadata":{"on_busy":"queue"}}`:                {"metadata.on_busy", `"queue"`},
		`{"event":"user.reconnect_with_state","session_id":"s1","content":{"last_seq":-1}}`:                      {"content.last_seq", `-1`},
		`{"event":"user.reconnect_with_state","session_id":"s1","content":{"last_event_id":"9b2c-41"}}`:          {"content.last_event_id", `"9b2c-41"`},
		`{"event":"user.response","session_id":"s1","content":{"approved":true}}`:                                {"step_id", ``},
		`{"event":"user.response","session_id":"s1","step_id":"p","content":{"approved":"yes"}}`:                 {"content.approved", `"yes"`},
		`{"event":"user.restart_task","session_id":"s1","content":{}}`:                                           {"content.task_id", ``},
		`{"event":"user.restart_task","session_id":"s1","content":{"task_id":1},"metadata":{"max_attempts":99}}`: {"metadata.max_attempts", `99`},
	} {
		c := codec(t, "")
		r, err := c.Request([]byte(frame))
		if err == nil && r.Action == dialect.Act {
			_, err = c.Decode([]byte(frame), dialect.Inbound{Session: dialecttest.Session, NewID: func() string { return "x" }})
		}
		f := fault.From(err, "")
		require.NotNil(t, f, frame)
		require.Equal(t, fault.InvalidField, f.Code, frame)
		require.Equal(t, want, [2]string{f.Field, string(f.Provided)}, frame)
		require.NotEmpty(t, f.Constraint, frame)
		require.Contains(t, f.Message, f.Constraint)
	}
}

// maxAllocs bounds what encoding one delta may allocate: it is done once for each event
// and variant, however many sockets watch. Measured: 16, most of them in encoding/json.
const maxAllocs = 24

func TestEncodingADeltaIsCheap(t *testing.T) {
	data, err := json.Marshal(event.MessageDeltaData{MessageID: "m1", RunID: "run_1", Attempt: 1, Text: "Slide 1: Introduction"})
	require.NoError(t, err)
	e := event.Event{Type: event.MessageDelta, Subject: dialecttest.Session.Name(), Sequence: 9, Stream: 99, Time: dialecttest.Now, Data: data}
	c := codec(t, "")
	n := testing.AllocsPerRun(100, func() { c.Encode(e) })
	require.LessOrEqual(t, n, float64(maxAllocs))
}
