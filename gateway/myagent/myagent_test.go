package myagent_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// settings are the original server's.
var settings = myagent.Settings{ServerVersion: "1.0.0", SessionTTL: 24 * time.Hour, Heartbeat: 30 * time.Second, MaxConcurrentTasks: 10}

func suite(t testing.TB) dialecttest.Suite {
	t.Helper()
	examples, err := fs.Sub(wire.Examples, "examples")
	require.NoError(t, err)
	return dialecttest.Suite{
		Dialect:     myagent.New(settings),
		Package:     "github.com/waggle-dev/waggle/gateway/myagent",
		Variants:    variants(),
		Transcripts: "testdata/transcripts",
		Schema:      wire.Schema,
		Examples:    examples,
		Inbound:     wire.Inbound,
		Outbound:    wire.Outbound,
		Kind:        "event",
		Accepted:    accepted,
		Unsaid:      unsaid,
		Dense:       true,
		Said:        linked,
		Asks:        asks,
		Refuse:      refuse,
	}
}

// variants are the queries of all codecs.
func variants() (all []url.Values) {
	for _, deltas := range []string{"", "none", "all"} {
		for _, language := range []string{"", "en_US"} {
			all = append(all, url.Values{"language": {language}, "deltas": {deltas}})
		}
	}
	return all
}

// unsaid are members of the original's examples that no frame has. The schemas say why.
var unsaid = []string{
	"system.connected session_id", "plan.start metadata.temperature",
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
	`{"event":"user.ack","content":{"last_event_id":"s1-5.77"}}`,
	`{"event":"user.reconnect","content":{"last_event_id":"s1-5"}}`,
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

// codec returns the variant for a language that clients get which ask for nothing else.
func codec(t testing.TB, language string) *myagent.Codec {
	return bound(t, url.Values{"language": {language}})
}

// dense returns the variant in which every event gives a frame.
func dense(t testing.TB, language string) *myagent.Codec {
	return bound(t, url.Values{"language": {language}, "deltas": {"all"}})
}

// in returns the variant of a codec for a language.
func in(t testing.TB, c *myagent.Codec, language string) *myagent.Codec {
	t.Helper()
	v, _ := c.In(language)
	return v
}

func bound(t testing.TB, query url.Values) *myagent.Codec {
	t.Helper()
	c, err := myagent.New(settings).Codec(query)
	require.NoError(t, err)
	return c
}

func TestBind(t *testing.T) {
	for language, want := range map[string]string{
		"": "myagent", "zh_CN": "myagent", "zh": "myagent", "zh-Hans-CN": "myagent", "en_US": "myagent+en", "en": "myagent+en", "en-GB": "myagent+en",
	} {
		require.Equal(t, want, codec(t, language).Name())
	}
	require.Equal(t, "myagent+en", in(t, codec(t, ""), "en_US").Name())
	require.Equal(t, "myagent+en+all", in(t, dense(t, ""), "en").Name())
	require.Equal(t, "myagent", in(t, codec(t, "en"), "zh_CN").Name(), "a session's language wins")
	require.Equal(t, "myagent+en", in(t, codec(t, "en"), "").Name(), "a session without a language has the socket's")
	require.Equal(t, "myagent+en", in(t, codec(t, "en"), "tlh").Name())
	for _, wrong := range []url.Values{{"language": {"tlh"}}, {"deltas": {"some"}}} {
		_, err := myagent.New(settings).Bind(wrong)
		require.ErrorIs(t, err, fault.New(fault.InvalidField))
	}
	english := settings
	english.Language = "en_US"
	c, err := myagent.New(english).Bind(nil)
	require.NoError(t, err)
	require.Equal(t, "myagent+en", c.Name(), "the installation's language is what clients get that say none")
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
		require.Equal(t, myagent.Ack, r.Action)
		require.Equal(t, "s1", r.Session)
		require.Equal(t, uint64(50), *r.Acked.Seq, frame)
	}
	r, err := codec(t, "").Request([]byte(`{"event":"user.ack","content":{"last_event_id":"50.7"}}`))
	require.NoError(t, err)
	require.Equal(t, myagent.Request{Action: myagent.Ack, Acked: myagent.Position{EventID: "50.7"}}, r)
	r, err = codec(t, "").Request([]byte(`{"event":"user.ack","content":{"last_event_id":"s-1-50.7"}}`))
	require.NoError(t, err)
	require.Equal(t, myagent.Request{Action: myagent.Ack, Session: "s-1", Acked: myagent.Position{EventID: "50.7", Session: "s-1"}}, r, "an event_id names its session")
	for _, rest := range []string{`"session_id":"s1","metadata":{"received_count":8}`, `"content":{"last_event_id":"a b"}`} {
		r, err = codec(t, "").Request([]byte(`{"event":"user.ack",` + rest + `}`))
		require.ErrorIs(t, err, fault.New(fault.InvalidField))
		require.Equal(t, myagent.Ack, r.Action, "the gateway knows that it is an ack, and drops it")
	}
}

// TestAnEventIDNamesItsSession: whatever the session is called, what a frame says is
// understood when it comes back, with and without the session's id beside it.
func TestAnEventIDNamesItsSession(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		session := id.EntityFromExternal(rapid.StringMatching(`[A-Za-z0-9_.-]{1,128}`).Draw(r, "session"))
		e := event.Event{
			Type: event.RunCompleted, Subject: "default.session." + session.String(), Sequence: rapid.Uint64Range(1, wire.MaxSeq).Draw(r, "seq"),
			Stream: rapid.Uint64Range(0, wire.MaxSeq).Draw(r, "stream"), Time: dialecttest.Now, Data: json.RawMessage(`{}`),
		}
		var f struct {
			SessionID string `json:"session_id"`
			EventID   string `json:"event_id"`
		}
		require.NoError(r, json.Unmarshal(codec(t, "").Encode(e)[0], &f))
		for _, named := range []string{"", fmt.Sprintf(`"session_id":%q,`, f.SessionID)} {
			for _, kind := range []string{wire.UserAck, wire.UserReconnect} {
				got, err := codec(t, "").Request(fmt.Appendf(nil, `{"event":%q,%s"content":{"last_event_id":%q}}`, kind, named, f.EventID))
				require.NoError(r, err)
				require.Equal(r, session.String(), got.Session)
				at, err := eventlog.ParseCursor(got.Acked.EventID + got.Resume.EventID)
				require.NoError(r, err)
				require.Equal(r, eventlog.Cursor{Seq: e.Sequence, Stream: e.Stream}, at)
			}
		}
	})
}

// TestWhatIsShownOfATextThatIsWritten: only clients that ask for it see the text of a
// planner or a solver, and all see the rest.
func TestWhatIsShownOfATextThatIsWritten(t *testing.T) {
	for _, stage := range []string{"", event.StagePlanning, event.StageSolving, event.StageAggregation} {
		part := event.Part{Stage: stage}
		for _, d := range []event.Data{
			event.MessageStartedData{Part: part}, event.MessageDeltaData{Part: part, Text: "x"}, event.MessageCompletedData{Part: part}, event.JobStartedData{Part: part},
		} {
			e, err := event.New(dialecttest.Session, "e", "test", dialecttest.Now, d)
			require.NoError(t, err)
			e.Sequence = 1
			answer := stage == "" || stage == event.StageAggregation
			for deltas, want := range map[string]bool{
				"all": true, "": e.Type == event.JobStarted || answer && e.Type == event.MessageDelta, "none": e.Type == event.JobStarted,
			} {
				c := bound(t, url.Values{"deltas": {deltas}})
				require.Len(t, c.Encode(e), map[bool]int{true: 1}[want], "%s of %q with deltas=%s", e.Type, stage, deltas)
				if delta, ok := d.(event.MessageDeltaData); ok && c.Gathers() != nil {
					require.Equal(t, want, c.Gathers()(delta), "what is put together is shown")
				}
			}
		}
	}
}

// TestDetailsAreForThoseWhoAsk: the web client makes a card of every notice, and the original
// says nothing of when a run or a tool has begun and of what a model call consumed.
func TestDetailsAreForThoseWhoAsk(t *testing.T) {
	for _, d := range []event.Data{event.RunStartedData{}, event.ToolStartedData{Tool: "x"}, event.UsageRecordedData{Model: "m"}} {
		e, err := event.New(dialecttest.Session, "e", "test", dialecttest.Now, d)
		require.NoError(t, err)
		e.Sequence = 1
		for deltas, want := range map[string]int{"all": 1, "": 0, "none": 0} {
			require.Len(t, bound(t, url.Values{"deltas": {deltas}}).Encode(e), want, "%s with deltas=%s", e.Type, deltas)
		}
	}
	e, err := event.New(dialecttest.Session, "e", "test", dialecttest.Now, event.ToolStartedData{Tool: "x", Retry: true, Part: event.Part{Stage: event.StageSolving}})
	require.NoError(t, err)
	require.Len(t, codec(t, "").Encode(e), 1, "a retry is said")
}

// A text that a client was not shown is not taken back, and no frame closes a text where the answer follows.
func TestNothingOfATextThatWasNotShown(t *testing.T) {
	for _, c := range []struct {
		data              event.Data
		all, merged, none int
	}{
		{event.MessageDiscardedData{}, 1, 1, 0},
		{event.MessageDiscardedData{Silent: true}, 1, 0, 0},
		{event.MessageDiscardedData{Part: event.Part{Stage: event.StageSolving}}, 1, 0, 0},
		{event.MessageCompletedData{StopReason: event.StopEnd, Content: "x"}, 1, 0, 0},
		{event.MessageCompletedData{StopReason: event.StopToolCalls}, 1, 0, 0},
	} {
		e, err := event.New(dialecttest.Session, "e", "test", dialecttest.Now, c.data)
		require.NoError(t, err)
		e.Sequence = 1
		for deltas, want := range map[string]int{"all": c.all, "": c.merged, "none": c.none} {
			require.Len(t, bound(t, url.Values{"deltas": {deltas}}).Encode(e), want, "%+v with deltas=%s", c.data, deltas)
		}
	}
}

// decoded returns the data of the one intent that a frame means.
func decoded[D dialect.IntentData](t *testing.T, frame string) D {
	t.Helper()
	intents, err := codec(t, "").Decode([]byte(frame), dialect.Inbound{Kind: id.KindSession, NewID: func() string { return "new-1" }})
	require.NoError(t, err)
	require.Len(t, intents, 1)
	data, ok := intents[0].Data.(D)
	require.True(t, ok, "%T", intents[0].Data)
	return data
}

func TestTasksOfAllDialects(t *testing.T) {
	got := decoded[dialect.SendMessage](t, accepted[3])
	require.Equal(t, []event.Step{
		{ID: "1", Title: "a", Description: "o"},
		{
			ID: "b", Title: "B", Description: "d", Priority: 2, Dependencies: []string{"1"}, Capability: "code",
			Context: json.RawMessage(`{"k":1}`), EstimatedTokens: 10, EstimatedSeconds: 3,
		},
	}, got.Steps)
	require.Equal(t, "q", got.Content)
	require.Equal(t, event.ModeSteps, got.Mode)

	got = decoded[dialect.SendMessage](t, accepted[2])
	require.Equal(t, "One", got.Content, "tasks without a question are known by their titles")
	require.JSONEq(t, `{"notes":"n","insights":[1]}`, string(got.Steps[0].Extra))
}

func TestWhatComesWithAMessageStaysWithIt(t *testing.T) {
	got := decoded[dialect.SendMessage](t, accepted[1])
	yes := true
	require.Equal(t, event.RunSpec{
		Mode: event.ModePlan, ConfirmPlan: &yes, OnBusy: event.OnBusyEnqueue, MaxConcurrent: 1, TimeoutSeconds: 60, ClientID: "c1",
		Extra: json.RawMessage(`{"tags":["a"]}`),
	}, got.RunSpec)
}

func TestBothKindsOfAnswer(t *testing.T) {
	got := decoded[dialect.Answer](t, accepted[4])
	require.Equal(t, dialect.Answer{
		InputID: "confirm_plan_1a2b3c4d", Approved: true, Steps: json.RawMessage(`[{"id":1,"title":"a"}]`), ClientID: "c1",
	}, got)
	got = decoded[dialect.Answer](t, `{"event":"user.response","session_id":"s1","step_id":"p","content":{"approved":false,"confirmed":true,"modified_tasks":"x"}}`)
	require.Equal(t, dialect.Answer{InputID: "p", Modified: json.RawMessage(`"x"`)}, got, "approved wins")
}

// TestAnExternalIDStaysTheSame: what cannot be a subject token is still the same command
// when it is sent again.
func TestAnExternalIDStaysTheSame(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		in := dialect.Inbound{Kind: id.KindSession, NewID: func() string { return "new-1" }}
		intents, err := codec(t, "").Decode([]byte(accepted[1]), in)
		require.NoError(t, err)
		ids[intents[0].ID] = true
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
		`{"event":"user.reconnect_with_state","session_id":"s1","content":{"last_event_id":"9b2c-x"}}`:           {"content.last_event_id", `"9b2c-x"`},
		`{"event":"user.response","session_id":"s1","content":{"approved":true}}`:                                {"step_id", ``},
		`{"event":"user.response","session_id":"s1","step_id":"p","content":{"approved":"yes"}}`:                 {"content.approved", `"yes"`},
		`{"event":"user.restart_task","session_id":"s1","content":{}}`:                                           {"content.task_id", ``},
		`{"event":"user.restart_task","session_id":"s1","content":{"task_id":1},"metadata":{"max_attempts":99}}`: {"metadata.max_attempts", `99`},
	} {
		c := codec(t, "")
		r, err := c.Request([]byte(frame))
		if err == nil && r.Action == myagent.Act {
			_, err = c.Decode([]byte(frame), dialect.Inbound{Kind: dialecttest.Session.Kind, NewID: func() string { return "x" }})
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

// TestWhatIsWrongIsAlwaysThere: error.validation has the rule and the value also of a
// member that is missing, and of an invalid question.
func TestWhatIsWrongIsAlwaysThere(t *testing.T) {
	c := codec(t, "")
	meta := func(frame []byte) (m struct {
		Field      string           `json:"field"`
		Constraint string           `json:"constraint"`
		Provided   *json.RawMessage `json:"provided_value"`
	},
	) {
		t.Helper()
		var f map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(frame, &f))
		require.Contains(t, string(f["metadata"]), `"provided_value":`)
		require.NoError(t, json.Unmarshal(f["metadata"], &m))
		return m
	}
	_, err := c.Decode([]byte(`{"event":"user.message","session_id":"s1"}`), dialect.Inbound{Kind: dialecttest.Session.Kind})
	m := meta(c.Refuse(dialecttest.Link, "s1", myagent.Act, fault.From(err, "")))
	require.Equal(t, "content", m.Field)
	require.NotEmpty(t, m.Constraint)
	require.Nil(t, m.Provided)
	e, err := event.New(dialecttest.Session, "e", "test", dialecttest.Now, event.CommandRefusedData{Code: string(fault.InputNotFound), Field: "step_id", InputID: "confirm_9"})
	require.NoError(t, err)
	m = meta(c.Encode(e)[0])
	require.Equal(t, "step_id", m.Field)
	require.NotEmpty(t, m.Constraint)
	require.JSONEq(t, `"confirm_9"`, string(*m.Provided))
}

// TestAQuestionAboutAToolSaysTheCall: plan_summary is all that a console shows.
func TestAQuestionAboutAToolSaysTheCall(t *testing.T) {
	e, err := event.New(dialecttest.Session, "e", "test", dialecttest.Now, event.InputRequestedData{
		InputID: "i", Scope: event.ScopeTool, Tool: "write_file", Arguments: json.RawMessage(`{"path":"a.go"}`),
	})
	require.NoError(t, err)
	for language, want := range map[string]string{"zh_CN": `工具：write_file；参数：{"path":"a.go"}`, "en_US": `Tool: write_file. Arguments: {"path":"a.go"}`} {
		var f struct {
			Metadata wire.ConfirmMeta `json:"metadata"`
		}
		require.NoError(t, json.Unmarshal(codec(t, language).Encode(e)[0], &f))
		require.Equal(t, want, f.Metadata.Summary)
	}
}
