package fold_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/dialect"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// logOf returns a session's log with the data.
func logOf(t testing.TB, data ...event.Data) (out []event.Event) {
	t.Helper()
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("one")}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, d := range data {
		e, err := event.New(log, fmt.Sprintf("e%d", i+1), "test", begin.Add(time.Duration(i)*time.Second), d)
		require.NoError(t, err)
		e.Sequence = uint64(i + 1)
		out = append(out, e)
	}
	return out
}

// folded returns the projection of a log.
func folded(events []event.Event) *fold.Thread {
	t := fold.New(fold.V1)
	for _, e := range events {
		t.Take(e)
	}
	return t
}

// request returns a valid request.
func request(t testing.TB, body string) input.Request {
	t.Helper()
	var in wire.Input
	require.NoError(t, json.Unmarshal([]byte(body), &in))
	in.ThreadID, in.ProtocolVersion = "thread-1", "1.0"
	if in.RunID == "" {
		in.RunID = "run-2"
	}
	if in.Messages == nil {
		in.Messages = []wire.Message{}
	}
	q, err := input.Check(in, input.To{})
	require.NoError(t, err)
	return q
}

// begun is the beginning of a log with a run that plans.
func begun() []event.Data {
	return []event.Data{
		event.SessionCreatedData{},
		event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "do it", RunSpec: event.RunSpec{Mode: event.ModePlan}},
		event.RunStartedData{RunID: "r1", MessageID: "m1", Content: "do it", Mode: event.ModePlan},
	}
}

// asking is a log of a run that waits for the confirmation of a plan.
func asking(more ...event.Data) []event.Data {
	return append(append(begun(),
		event.PlanStartedData{RunID: "r1", Part: event.Part{JobID: "p1", Stage: event.StagePlanning}},
		event.PlanCompletedData{RunID: "r1", PlanID: "p", Steps: []event.Step{{ID: "a", Title: "A"}, {ID: "b", Title: "B"}}, Part: event.Part{JobID: "p1"}},
		event.InputRequestedData{InputID: "q1", RunID: "r1", Scope: event.ScopePlan, PlanID: "p", Steps: []event.Step{{ID: "a", Title: "A"}}},
	), more...)
}

// TestWhatWasSaidBefore: a new thread gets the conversation before its first message, whatever its messages are, also at
// the second try of a request whose first one has only made the thread.
func TestWhatWasSaidBefore(t *testing.T) {
	q := request(t, `{"messages":[
		{"id":"1","role":"user","content":"first"},
		{"id":"2","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"id":"3","role":"tool","toolCallId":"c","content":"result"},
		{"id":"4","role":"assistant","content":"second"},
		{"id":"5","role":"user","content":"now"}]}`)
	for _, log := range [][]event.Data{nil, {event.SessionCreatedData{}}} {
		m, err := folded(logOf(t, log...)).Means(q)
		require.NoError(t, err)
		d, ok := m.Intents[0].Data.(dialect.SendMessage)
		require.True(t, ok)
		require.Equal(t, []event.Said{{Role: "user", Content: "first"}, {Role: "assistant", Content: "second"}}, d.History, "%d events", len(log))
	}
	m, err := folded(logOf(t, append(begun(), event.RunCancelledData{RunID: "r1"})...)).Means(q)
	require.NoError(t, err)
	require.Empty(t, m.Intents[0].Data.(dialect.SendMessage).History, "the log is the truth")
}

// TestARefusalIsForGood: the repeat of a request that was refused is refused in the same way.
func TestARefusalIsForGood(t *testing.T) {
	log := append(begun(), event.MessageRefusedData{MessageID: fold.CommandID("run-2"), Code: string(fault.SessionBusy), Message: "busy"})
	_, err := folded(logOf(t, log...)).Means(request(t, `{"messages":[{"id":"x","role":"user","content":"now"}]}`))
	require.ErrorIs(t, err, fault.New(fault.SessionBusy))
	_, err = folded(logOf(t, log...)).Means(request(t, `{"runId":"run-3","messages":[{"id":"x","role":"user","content":"now"}]}`))
	require.NoError(t, err)
}

// TestAnswersFitTheirQuestions: what does not answer the question is refused with its place.
func TestAnswersFitTheirQuestions(t *testing.T) {
	thread := folded(logOf(t, asking()...))
	for payload, field := range map[string]string{
		`null`: "", `1`: "", `"yes"`: "", `[]`: "", `{}`: ".approved", `{"approved":null}`: ".approved", `{"approved":"yes"}`: ".approved",
		`{"approved":true,"feedback":1}`: ".feedback", `{"approved":true,"tasks":{}}`: ".tasks", `{"approved":true,"tasks":[null]}`: ".tasks[0]",
		`{"approved":true,"tasks":[1]}`: ".tasks", `{"approved":true,"modified":[]}`: ".modified", `{"approved":true,"modified":{"a":null}}`: ".modified.a",
	} {
		_, err := thread.Means(request(t, `{"resume":[{"interruptId":"q1","status":"resolved","payload":`+payload+`}]}`))
		var f *fault.Fault
		require.ErrorAs(t, err, &f, payload)
		require.Equal(t, fault.InvalidField, f.Code)
		require.Equal(t, "resume[0].payload"+field, f.Field, payload)
	}
	for payload, want := range map[string]dialect.Answer{
		`true`: {Approved: true}, ` false `: {}, `{"approved":true,"tasks":null,"modified":null}`: {Approved: true},
		`{"approved":true,"tasks":[{"id":"a"}],"feedback":"so"}`: {Approved: true, Feedback: "so", Steps: json.RawMessage(`[{"id":"a"}]`)},
	} {
		m, err := thread.Means(request(t, `{"resume":[{"interruptId":"q1","status":"resolved","payload":`+payload+`}]}`))
		require.NoError(t, err, payload)
		got, ok := m.Intents[0].Data.(dialect.Answer)
		require.True(t, ok)
		want.InputID, want.Segment = "q1", "run-2"
		require.Equal(t, want, got, payload)
	}
}

// TestUnknownQuestionsAreNamed: answers to questions that the thread does not have change nothing, and are remarked on.
func TestUnknownQuestionsAreNamed(t *testing.T) {
	const ask = `{"resume":[{"interruptId":"no","status":"resolved","payload":true}%s],"messages":[{"id":"x","role":"user","content":"now"}]}`
	m, err := folded(nil).Means(request(t, fmt.Sprintf(ask, "")))
	require.NoError(t, err)
	require.Equal(t, fold.Speak, m.Kind, "it goes on")
	require.Equal(t, []string{"no"}, m.Unknown)
	m, err = folded(nil).Means(request(t, `{"resume":[{"interruptId":"no","status":"cancelled"}]}`))
	require.NoError(t, err)
	require.Equal(t, fold.Look, m.Kind)
	require.Equal(t, []string{"no"}, m.Unknown)
	thread := folded(logOf(t, asking()...))
	m, err = thread.Means(request(t, fmt.Sprintf(ask, `,{"interruptId":"q1","status":"resolved","payload":true}`)))
	require.NoError(t, err)
	require.Equal(t, fold.Reply, m.Kind)
	require.Len(t, m.Intents, 1)
	require.Equal(t, []string{"no"}, m.Unknown)
	_, err = thread.Means(request(t, fmt.Sprintf(ask, "")))
	require.ErrorIs(t, err, fault.New(fault.InputRequired))
}

// TestWhatCannotBeStopped: a task that does not exist, or has ended.
func TestWhatCannotBeStopped(t *testing.T) {
	thread := folded(logOf(t, asking(
		event.InputAnsweredData{InputID: "q1", RunID: "r1", CommandID: "c1", Decision: event.DecisionApprove},
		event.StepStartedData{RunID: "r1", Step: event.Step{ID: "a", Title: "A"}, Part: event.Part{JobID: "j1", StepID: "a", Stage: event.StageSolving}},
		event.StepCompletedData{RunID: "r1", Part: event.Part{JobID: "j1", StepID: "a", Stage: event.StageSolving}},
	)...))
	_, err := thread.Stops(wire.Cancel{TaskID: "none"})
	require.ErrorIs(t, err, fault.New(fault.TaskNotFound))
	_, err = thread.Stops(wire.Cancel{TaskID: "a"})
	require.ErrorIs(t, err, fault.New(fault.RunOver))
	i, err := thread.Stops(wire.Cancel{TaskID: "b", Reason: "so"})
	require.NoError(t, err)
	require.Equal(t, dialect.CancelStep{StepID: "b", Reason: "so"}, i.Data)
}

// frames are those of a log in one list.
func framesOf(v fold.Variant, events []event.Event) (out []string) {
	for _, list := range play(v, events) {
		for _, f := range list {
			out = append(out, string(f.Data))
		}
	}
	return out
}

// TestAbsentIsAbsent: a member without a value is not there.
func TestAbsentIsAbsent(t *testing.T) {
	log := logOf(t, asking(
		event.InputExpiredData{InputID: "q1", RunID: "r1"},
		event.ArtifactPersistedData{Artifact: event.Artifact{ArtifactID: "f1", RunID: "r1", Path: "a.txt", Type: "file"}},
		event.RetryScheduledData{RunID: "r1", Code: "MODEL_FAILED", Message: "again", Attempt: 1, MaxAttempts: 3},
		event.UsageRecordedData{RunID: "r1", Model: "m", OutputTokens: 7},
		event.RunCompletedData{RunID: "r1", Content: "done"},
	)...)
	for _, v := range variants {
		for _, f := range framesOf(v, log) {
			require.NotContains(t, f, `:""`, v.Name())
			require.NotContains(t, f, `"inputTokens":0`, v.Name())
		}
	}
}

// TestFilesHaveAddresses where their contents were kept: those of the version that the event tells of.
func TestFilesHaveAddresses(t *testing.T) {
	stored := event.Artifact{ArtifactID: "f1", RunID: "r1", Path: "out/a.txt", Type: "file", Size: 7, Object: &event.ObjectRef{Log: "member.m1", Digest: "0a", Size: 99}}
	log := logOf(t, append(begun(),
		event.ArtifactPersistedData{Artifact: event.Artifact{ArtifactID: "f1", RunID: "r1", Path: "out/a.txt", Type: "file"}},
		event.ArtifactUpdatedData{Artifact: stored}, event.RunCompletedData{RunID: "r1", Content: "done"})...)
	for _, v := range variants {
		all := strings.Join(framesOf(v, log), "\n")
		require.Contains(t, all, `"content":{"artifactId":"f1","path":"out/a.txt","type":"file"}`, v.Name())
		require.Contains(t, all, `/api/v1/artifacts/member/m1/f1?version=0a`, v.Name())
	}
}

// TestImagesOfResultsHaveAddresses for clients that take parts of results. Those of members have none.
func TestImagesOfResultsHaveAddresses(t *testing.T) {
	of := func(log string) []event.File {
		return []event.File{{Kind: event.FileImage, MediaType: "image/png", Size: 3, Object: event.ObjectRef{Log: log, Digest: "0a"}}}
	}
	called := func(id string, files []event.File) []event.Data {
		return []event.Data{
			event.ToolCalledData{CallID: id, RunID: "r1", Attempt: 1, Tool: "shoot", Arguments: json.RawMessage(`{}`)},
			event.ToolCompletedData{CallID: id, RunID: "r1", Attempt: 1, Tool: "shoot", Result: "an image", Files: files},
		}
	}
	log := logOf(t, slices.Concat(begun(), called("c1", of("session.s1")), called("c2", of("member.m1")), []event.Data{event.RunCompletedData{RunID: "r1", Content: "done"}})...)
	parts := `"content":[{"type":"text","text":"an image"},{"type":"image","source":{"type":"url","value":"/api/v1/sessions/s1/files/0a","mimeType":"image/png"}}]`
	for _, v := range variants {
		want := map[bool]int{true: 1, false: 0}[v == fold.V1]
		require.Equal(t, want, strings.Count(strings.Join(framesOf(v, log), "\n"), parts), v.Name())
		require.Equal(t, 2-want, strings.Count(strings.Join(framesOf(v, log), "\n"), `"content":"an image"`), v.Name())
	}
}

// TestQuestionsSayWhatTheyAreAbout in the members that the protocol names.
func TestQuestionsSayWhatTheyAreAbout(t *testing.T) {
	all := strings.Join(framesOf(fold.V1, logOf(t, asking()...)), "\n")
	require.Contains(t, all, `"plan_id":"p"`)
	log := append(begun(), event.InputRequestedData{InputID: "b", RunID: "r1", Scope: event.ScopeBudget, Summary: "more?", Budget: &event.BudgetUse{Resource: "tokens", Tokens: 9}})
	require.Contains(t, strings.Join(framesOf(fold.V1, logOf(t, log...)), "\n"), `"metadata":{"waggle":{"resource":"tokens"`)
}

// TestSubagentsWaitForTheirOwnQuestions: a suspended subagent names the questions that it waits for, and no others.
func TestSubagentsWaitForTheirOwnQuestions(t *testing.T) {
	part := func(step string) event.Part {
		return event.Part{JobID: "j" + step, StepID: step, Stage: event.StageSolving}
	}
	data := asking(event.InputAnsweredData{InputID: "q1", RunID: "r1", CommandID: "c1", Decision: event.DecisionApprove})
	for _, step := range []string{"a", "b"} {
		data = append(data,
			event.StepStartedData{RunID: "r1", Step: event.Step{ID: step, Title: step}, Part: part(step)},
			event.JobStartedData{RunID: "r1", Attempt: 2, Part: part(step)})
	}
	for _, step := range []string{"a", "b"} {
		data = append(data,
			event.InputRequestedData{InputID: "ask" + step, RunID: "r1", Scope: event.ScopeTool, CallID: "call" + step, Tool: "write", Digest: "d"},
			event.JobSuspendedData{RunID: "r1", Inputs: []string{"ask" + step}, Part: part(step)})
	}
	all := strings.Join(framesOf(fold.V1, logOf(t, data...)), "\n")
	require.Contains(t, all, `"subagentRunId":"ja","outcome":{"type":"suspended","interruptIds":["aska"]}`)
	require.Contains(t, all, `"subagentRunId":"jb","outcome":{"type":"suspended","interruptIds":["askb"]}`)
}

// TestAMessageShowsItsFiles, in the forms that the variant takes.
func TestAMessageShowsItsFiles(t *testing.T) {
	data := begun()
	data[1] = event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "look", Attachments: event.Attachments{
		ImageURLs: []string{"https://example.com/a.png"}, ContextFiles: []string{"https://example.com/b.pdf", "notes.md"},
	}}
	all := strings.Join(framesOf(fold.V1, logOf(t, data...)), "\n")
	require.Contains(t, all, `{"type":"image","source":{"type":"url","value":"https://example.com/a.png"}},{"type":"document","source":{"type":"url","value":"https://example.com/b.pdf"}},{"type":"document","source":{"type":"file","value":"notes.md"}}`)
	require.NotContains(t, strings.Join(framesOf(fold.V0, logOf(t, data...)), "\n"), "notes.md", "older clients know no handles of files")
}

// TestFramesSayWhichAttemptTheyAreOf.
func TestFramesSayWhichAttemptTheyAreOf(t *testing.T) {
	log := logOf(t, append(begun(), event.MessageDeltaData{RunID: "r1", MessageID: "x", Attempt: 3, Text: "a"})...)
	require.Contains(t, framesOf(fold.V1, log)[1], `"attempt":3`)
}

// TestAnEmptyThreadHasNoTime.
func TestAnEmptyThreadHasNoTime(t *testing.T) {
	for _, f := range fold.New(fold.V1).Clone("t").Idle("r", "") {
		require.NotContains(t, string(f.Data), `"timestamp"`)
		require.NotContains(t, string(f.Data), `"time"`)
	}
}

// TestAFailedAttemptIsShown: the task is to be done again.
func TestAFailedAttemptIsShown(t *testing.T) {
	part := event.Part{JobID: "j1", StepID: "a", Stage: event.StageSolving}
	log := logOf(t, asking(
		event.InputAnsweredData{InputID: "q1", RunID: "r1", CommandID: "c1", Decision: event.DecisionApprove},
		event.StepStartedData{RunID: "r1", Step: event.Step{ID: "a", Title: "A"}, Part: part},
		event.JobFailedData{RunID: "r1", Code: "MODEL_FAILED", Message: "no", Part: part},
	)...)
	frames := framesOf(fold.V1, log)
	require.Contains(t, frames[len(frames)-2], wire.SubagentError)
	require.Contains(t, frames[len(frames)-1], `"path":"/tasks/0/status","value":"pending"`)
}

// TestABorrowedNameIsOnlyABoundary: a viewer may call the newest run as it likes.
func TestABorrowedNameIsOnlyABoundary(t *testing.T) {
	log := logOf(t, begun()...)
	thread := folded(log).Clone("t")
	thread.Call("mine")
	frames := thread.Prelude()
	require.Contains(t, string(frames[0].Data), `"runId":"mine"`)
	end := thread.Next(logOf(t, append(begun(), event.RunCancelledData{RunID: "r1"})...)[3])
	require.Contains(t, string(end[0].Data), `"runId":"mine"`)
}

// TestOlderMessagesAreKeptWhereTheyAreAskedFor: a page before any message is the same however many follow.
func TestOlderMessagesAreKeptWhereTheyAreAskedFor(t *testing.T) {
	data := []event.Data{event.SessionCreatedData{}}
	for i := range 1500 {
		run, message := fmt.Sprintf("r%d", i), fmt.Sprintf("m%d", i)
		data = append(data,
			event.MessageReceivedData{MessageID: message, RunID: run, Content: message},
			event.RunStartedData{RunID: run, MessageID: message, Content: message}, event.RunCancelledData{RunID: run})
	}
	log := logOf(t, data...)
	_, before, ok := folded(log).Messages("m300", 10)
	require.False(t, ok, before)
	old := fold.Until(id.KindSession, fold.V1, "m300")
	for _, e := range log {
		old.Take(e)
	}
	page, before, ok := old.Messages("m300", 10)
	require.True(t, ok)
	require.Equal(t, "m290", before)
	require.Equal(t, "m290", page[0].ID)
	require.Equal(t, "m299", page[9].ID)
}

// TestAMessageSaysSomething: as at every other door, a message of white space only is refused. Parts that the model cannot take are
// passed over, and the message counts.
func TestAMessageSaysSomething(t *testing.T) {
	for _, content := range []string{`""`, `" \t\n\u00a0"`, `[]`, `[{"type":"text","text":"  "},{"type":"text","text":""}]`} {
		_, err := fold.New(fold.V1).Means(request(t, `{"messages":[{"id":"1","role":"user","content":`+content+`}]}`))
		var f *fault.Fault
		require.ErrorAs(t, err, &f, content)
		require.Equal(t, fault.InvalidField, f.Code, content)
		require.Equal(t, "messages[0].content", f.Field, content)
	}
	for _, content := range []string{
		`" x "`, `[{"type":"image","source":{"type":"url","value":"https://a.example/b.png"}}]`,
		`[{"type":"audio","source":{"type":"data","value":"AAAA","mimeType":"audio/wav"}}]`,
	} {
		m, err := fold.New(fold.V1).Means(request(t, `{"messages":[{"id":"1","role":"user","content":`+content+`}]}`))
		require.NoError(t, err, content)
		require.Equal(t, fold.Speak, m.Kind)
	}
}
