package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// everyone are the roles behind a gateway.
const everyone = "session,pipeline,worker,tools"

// TestASessionPlansSolvesAndAnswers: the first session of a newcomer, in one process
// with the demo model: planned, solved with real tools, put together and answered.
func TestASessionPlansSolvesAndAnswers(t *testing.T) {
	_, addr := up(t, nil)
	m := client.DialMyAgent(t, addr)
	m.Create("zh_CN", nil)
	m.Message(question, map[string]any{"tags": []string{"urgent"}})
	answer := m.Until(myagent.AgentFinalAnswer, myagent.AgentError)
	require.Equal(t, myagent.AgentFinalAnswer, answer.Event, "%s", answer.Raw)
	require.Contains(t, answer.Text(), "notes.md")
	require.Contains(t, answer.Text(), "Welcome to your workspace")
	meta := sdk.As[myagent.FinalAnswerMeta](answer.Metadata)
	require.Equal(t, "success", meta.Status)
	require.Nil(t, meta.CostUSD, "the demo model has no price, and none is invented")
	require.Equal(t, answer.Text(), streamed(m.Frames, "aggregation"), "the answer was streamed")
	inOrder(t, m.Frames,
		myagent.SystemConnected, myagent.AgentSessionCreated, myagent.UserMessage, myagent.PlanStart, myagent.AgentThinking,
		myagent.PlanCompleted, myagent.SolverStart, myagent.AgentToolCall, myagent.AgentToolResult, myagent.SolverCompleted,
		myagent.SolverProgress, myagent.AggregateStart, myagent.AgentPartialAnswer, myagent.AggregateCompleted,
		myagent.PipelineCompleted, myagent.AgentFinalAnswer)
	for _, f := range m.Frames {
		if f.Event == myagent.PlanStart {
			require.Equal(t, "开始规划："+question, f.Show)
		}
	}
}

// inOrder requires that the frames hold the events in this order, others between them.
func inOrder(t *testing.T, frames []sdk.Frame, events ...string) {
	t.Helper()
	i := 0
	for _, f := range frames {
		if i < len(events) && f.Event == events[i] {
			i++
		}
	}
	require.Equal(t, len(events), i, "%s is not where it should be in %s", events[min(i, len(events)-1)], client.Names(frames))
}

// streamed returns what the partial answers of a stage add up to: the text of their
// last message.
func streamed(frames []sdk.Frame, stage string) string {
	texts, last := map[string]string{}, ""
	for _, f := range frames {
		if d := sdk.As[myagent.PartialAnswerMeta](f.Metadata); f.Event == myagent.AgentPartialAnswer && d.Stage == stage {
			texts[d.MessageID] += f.Text()
			last = d.MessageID
		}
	}
	return texts[last]
}

// TestAPlanInTheTerminal: "waggle chat --plan" shows the plan, takes a decision that
// is piped in, shows how the tasks get on, and the answer.
func TestAPlanInTheTerminal(t *testing.T) {
	dir, addr := up(t, nil)
	url := "ws://" + addr + "/ws"
	talk := func(input string, args ...string) (string, error) {
		p := process.Start(t, process.Options{
			Name: "chat", Dir: dir, Stdin: input, Args: append([]string{"chat", "--url", url, "--plan"}, args...),
		})
		err := p.Wait()
		return p.Output(), err
	}
	out, err := talk("y\n", question)
	require.NoError(t, err, out)
	for _, want := range []string{"Task", "After", "Carry it out?", "▸ 1 ", "✓ 1 ", "notes.md", "Welcome to your workspace"} {
		require.Contains(t, out, want)
	}
	out, err = talk("n not today\n", question)
	require.NoError(t, err, out)
	require.NotContains(t, out, "▸")
	out, err = talk("", "--yes", question)
	require.NoError(t, err, out)
	require.NotContains(t, out, "Carry it out?")
	require.Contains(t, out, "Welcome to your workspace")

	waggle := func(args ...string) string {
		p := process.Start(t, process.Options{Name: "sessions", Dir: dir, Env: []string{"WAGGLE_URL=" + url}, Args: append([]string{"sessions"}, args...)})
		require.NoError(t, p.Wait(), p.Output())
		return p.Output()
	}
	var list []string
	process.Eventually(t, "the list has all three, which follows the logs", func() bool {
		list = strings.Split(strings.TrimSpace(waggle("list")), "\n")
		return len(list) == 4
	})
	session := strings.Fields(list[1])[0]
	require.Contains(t, waggle("show", session), "completed")
	waggle("export", session, "-o", filepath.Join(dir, "state.json"))
	info, err := os.Stat(filepath.Join(dir, "state.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, session, strings.TrimSpace(waggle("import", filepath.Join(dir, "state.json"))))
	require.Contains(t, waggle("cancel", session), "asked to stop")
}

// tasks is a plan of independent tasks with these ids.
func tasks(ids ...string) []event.Step {
	out := make([]event.Step, len(ids))
	for i, id := range ids {
		out[i] = event.Step{ID: id, Title: "Task " + id}
	}
	return out
}

// say is an answer of some words.
func say(text string) scripted.Reply {
	return scripted.Stream(scripted.Text(scripted.Words(text)...), scripted.Usage(7, 5))
}

// TestPlansAreConfirmedChangedAndRejected: each way in which a question about a plan
// can end, with the scripted model behind the OpenAI protocol.
func TestPlansAreConfirmedChangedAndRejected(t *testing.T) {
	f := newFleet(t, scripted.Stages{
		Plan:  scripted.Always(scripted.Plan(tasks("a", "b")...)),
		Solve: func(x *scripted.Exchange) scripted.Reply { return say("did " + x.Data.Task.Title) },
	}.Script())
	f.configure(`
pipeline: {confirm_timeout: 8s}
models: {prices: [{model: "openai:scripted", input: 1000, output: 2000}]}
`)
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", map[string]any{"confirm_plan": true})
	ask := func(text string) sdk.Frame {
		m.Message(text, nil)
		return m.Until(myagent.AgentUserConfirm)
	}
	respond := func(step string, content map[string]any) {
		m.Send(myagent.UserResponse, map[string]any{"step_id": step, "content": content})
	}
	final := func() (string, myagent.FinalAnswerMeta) {
		f := m.Until(myagent.AgentFinalAnswer, myagent.AgentInterrupted)
		return f.Text(), sdk.As[myagent.FinalAnswerMeta](f.Metadata)
	}

	t.Run("approved", func(t *testing.T) {
		q := ask("first")
		require.Len(t, sdk.As[myagent.ConfirmMeta](q.Metadata).Tasks, 2)
		respond(q.StepID, map[string]any{"approved": true})
		text, meta := final()
		require.Contains(t, text, "did Task a")
		require.Equal(t, "success", meta.Status)
		require.NotNil(t, meta.CostUSD, "every model that was asked has a price")
		require.Positive(t, *meta.CostUSD)
	})
	t.Run("modified by id, after a list that is none", func(t *testing.T) {
		q := ask("second")
		respond(q.StepID, map[string]any{"confirmed": true, "tasks": []any{map[string]any{"id": "x", "title": "X", "dependencies": []string{"nobody"}}}})
		broken := m.Until(myagent.PlanCoercionError, myagent.SolverStart)
		require.Equal(t, q.StepID, sdk.As[myagent.CoercionMeta](broken.Metadata).ConfirmStepID, "the question stays open")
		respond(q.StepID, map[string]any{"approved": true, "modified_tasks": []any{map[string]any{"id": "b", "title": "Better"}}})
		text, _ := final()
		require.Contains(t, text, "did Task a")
		require.Contains(t, text, "did Better")
	})
	t.Run("replaced", func(t *testing.T) {
		q := ask("third")
		respond(q.StepID, map[string]any{"confirmed": true, "tasks": []any{map[string]any{"id": "c", "title": "Only one"}}})
		text, _ := final()
		require.Contains(t, text, "did Only one")
		require.NotContains(t, text, "Task a")
	})
	t.Run("rejected", func(t *testing.T) {
		q := ask("fourth")
		respond(q.StepID, map[string]any{"approved": false, "feedback": "too expensive"})
		cancelled := m.Until(myagent.PlanCancelled)
		require.Equal(t, "too expensive", sdk.As[myagent.PlanCancelledMeta](cancelled.Metadata).Feedback)
		_, meta := final()
		require.Equal(t, "rejected", meta.Status)
		respond(q.StepID, map[string]any{"approved": true})
		late := m.Until(myagent.AgentError, myagent.ErrorValidation)
		require.Zero(t, late.Seq, "a late answer is told whose counted")
		require.Equal(t, q.StepID, late.Meta().Context.StepID)
	})
	t.Run("no answer", func(t *testing.T) {
		ask("fifth")
		m.Until(myagent.PlanCancelled)
		m.Until(myagent.ErrorTimeout)
		_, meta := final()
		require.Equal(t, "timeout", meta.Status)
	})
	t.Run("one message without the question", func(t *testing.T) {
		m.Message("sixth", map[string]any{"confirm_plan": false})
		next := m.Until(myagent.AgentUserConfirm, myagent.AgentFinalAnswer)
		require.Equal(t, myagent.AgentFinalAnswer, next.Event)
	})
}

// TestPlansAreCancelledAndMadeAgain: a plan is dropped, made anew with another
// question, and made again when the model's plan is invalid.
func TestPlansAreCancelledAndMadeAgain(t *testing.T) {
	f := newFleet(t, scripted.Stages{
		Plan: func(x *scripted.Exchange) scripted.Reply {
			switch {
			case strings.Contains(x.Data.Question, "hang"):
				return scripted.Stream(scripted.Text(`{"tasks`), scripted.Hang())
			case strings.Contains(x.Data.Question, "circle") && len(x.Data.Feedback) == 0:
				return scripted.Plan(event.Step{ID: "a", Title: "A", Dependencies: []string{"b"}}, event.Step{ID: "b", Title: "B", Dependencies: []string{"a"}})
			case strings.Contains(x.Data.Question, "nonsense"):
				return say("I would rather not.")
			}
			return scripted.Plan(event.Step{ID: "a", Title: x.Data.Question})
		},
		Solve: func(x *scripted.Exchange) scripted.Reply { return say("did " + x.Data.Task.Title) },
	}.Script())
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)

	m.Message("hang", nil)
	m.Until(myagent.AgentThinking)
	m.Send(myagent.UserReplan, map[string]any{"content": map[string]any{"question": "something else"}})
	m.Until(myagent.PlanCancelled)
	require.Contains(t, m.Until(myagent.AgentFinalAnswer).Text(), "did something else")

	m.Message("hang again", nil)
	m.Until(myagent.AgentThinking)
	m.Send(myagent.UserCancelPlan, nil)
	m.Until(myagent.PlanCancelled)
	require.Equal(t, "cancelled", sdk.As[myagent.FinalAnswerMeta](m.Until(myagent.AgentFinalAnswer).Metadata).Status)

	m.Message("a circle", nil)
	m.Until(myagent.PlanCoercionError)
	require.Contains(t, m.Until(myagent.AgentFinalAnswer, myagent.AgentError).Text(), "did a circle")

	from := len(m.Frames)
	m.Message("nonsense", nil)
	require.Equal(t, "PLAN_FAILED", sdk.As[myagent.ErrorMeta](m.Until(myagent.AgentFinalAnswer, myagent.AgentError).Metadata).ErrorType)
	require.Equal(t, 3, count(m.Frames[from:], myagent.PlanCoercionError), "two replans, then it is given up")

	m.Send(myagent.UserReplan, map[string]any{"content": map[string]any{"question": "the last one"}})
	require.Contains(t, m.Until(myagent.AgentFinalAnswer, myagent.AgentError).Text(), "did the last one", "without a run it starts one")
}

func count(frames []sdk.Frame, name string) int {
	n := 0
	for _, f := range frames {
		if f.Event == name {
			n++
		}
	}
	return n
}

// TestWhatIsWrongIsSaid: mistakes of clients are told with what was wrong, and the
// socket stays open.
func TestWhatIsWrongIsSaid(t *testing.T) {
	release := make(chan struct{})
	f := newFleet(t, scripted.Stages{Plan: scripted.Always(scripted.Stream(scripted.Gate(release), scripted.Text(`{"tasks":[{"id":"a","title":"A"}]}`)))}.Script())
	sessions := f.serve("session")
	f.serve("pipeline,worker,tools")
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	for text, code := range map[string]string{`{"event":"user.dance","session_id":"s"}`: "UNKNOWN_MESSAGE_TYPE", `[1`: "BAD_JSON", `{}`: "INVALID_FIELD"} {
		m.Raw(text)
		require.Equal(t, code, sdk.As[myagent.ValidationMeta](m.Until(myagent.ErrorValidation).Metadata).ErrorType)
	}
	m.Create("en_US", nil)

	m.Raw(`{"event":"user.solve_tasks","session_id":"` + m.Session + `","content":{"tasks":[]}}`)
	wrong := sdk.As[myagent.ValidationMeta](m.Until(myagent.ErrorValidation).Metadata)
	require.Equal(t, "content.tasks", wrong.Field)
	require.NotEmpty(t, wrong.Constraint)
	require.Equal(t, "0", string(wrong.Provided))
	m.Raw(`{"event":"user.message","session_id":"` + m.Session + `","content":"` + strings.Repeat("x", 10_001) + `"}`)
	require.Equal(t, "content", sdk.As[myagent.ValidationMeta](m.Until(myagent.ErrorValidation).Metadata).Field)

	mine := m.Session
	m.Session = "nobodys_session"
	m.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": 3}})
	failed := sdk.As[myagent.RecoveryFailedMeta](m.Until(myagent.ErrorRecoveryFailed).Metadata)
	require.Equal(t, "SESSION_EXPIRED", failed.ErrorCode)
	require.Equal(t, "create_new_session", failed.Strategy)
	m.Session = mine
	m.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": 99}})
	require.Equal(t, "CURSOR_INVALID", sdk.As[myagent.ValidationMeta](m.Until(myagent.ErrorValidation, myagent.ErrorRecoveryFailed).Metadata).ErrorType)

	m.Message("first", nil)
	m.Until(myagent.PlanStart)
	m.Message("second", nil)
	require.Equal(t, "SESSION_BUSY", sdk.As[myagent.ErrorMeta](m.Until(myagent.AgentError).Metadata).ErrorType)
	close(release)
	m.Until(myagent.AgentFinalAnswer)

	for range 200 { // five times what a socket may send at once
		m.Raw(`{"event":"user.dance"}`)
	}
	m.Until(myagent.ErrorRateLimited)

	sessions.Kill()
	o := client.DialMyAgent(t, addr)
	o.Session = m.Session
	o.Send(myagent.UserRequestState, nil)
	require.Equal(t, "BUS_UNAVAILABLE", sdk.As[myagent.SystemErrorMeta](o.Until(myagent.SystemError).Metadata).ErrorType)
}

// TestAClientComesBack: in every way of the protocol, after acknowledgements, with
// nothing lost and nothing shown twice.
func TestAClientComesBack(t *testing.T) {
	f := newFleet(t, scripted.Stages{
		Plan:  scripted.Always(scripted.Plan(tasks("a", "b")...)),
		Solve: scripted.Always(scripted.Stream(scripted.Every(2*time.Millisecond, words(150)...))),
	}.Script())
	f.configure("gateway: {heartbeat: 500ms}\n")
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	session := m.Session
	m.Message("go", nil)
	m.Until(myagent.AgentFinalAnswer)
	newest := m.Seq()
	beat := m.Until(myagent.SystemHeartbeat)
	require.Equal(t, session, beat.SessionID)
	require.Equal(t, newest, *sdk.As[myagent.HeartbeatMeta](beat.Metadata).Seq)
	want := logged(m.Frames)

	again := client.DialMyAgent(t, addr)
	end := again.Attach(session, 0)
	require.Equal(t, want, logged(again.Frames), "one by one")
	require.Equal(t, len(want), *sdk.As[myagent.NoticeMeta](end.Metadata).Replayed)

	middle := newest / 2
	again = client.DialMyAgent(t, addr)
	again.Attach(session, middle)
	require.Equal(t, want[middle:], logged(again.Frames), "from the middle")

	batched := client.DialMyAgent(t, addr)
	batched.Session = session
	batched.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": 0, "batch": true}})
	batched.Replayed()
	require.Equal(t, want, listed(t, batched.Frames), "in lists")

	merged := client.DialMyAgent(t, addr)
	merged.Session = session
	merged.Send(myagent.UserReconnect, map[string]any{"content": map[string]any{"last_seq": 0, "merge": true}})
	merged.Replayed()
	require.Less(t, len(logged(merged.Frames)), len(want), "pieces of a text as one")
	require.Equal(t, streamed(m.Frames, "aggregation"), streamed(merged.Frames, "aggregation"))

	m.Send(myagent.UserAck, map[string]any{"metadata": map[string]any{"last_seq": newest - 5, "client_id": "browser_1"}})
	process.Eventually(t, "the acknowledgement is stored", func() bool {
		acked := client.DialMyAgent(t, addr)
		defer acked.Close()
		acked.Session = session
		acked.Raw(`{"event":"user.reconnect","session_id":"` + session + `","metadata":{"client_id":"browser_1"}}`)
		for {
			f, err := acked.Peek()
			require.NoError(t, err)
			if f.Seq > 0 {
				return f.Seq == newest-4
			}
		}
	})
}

// logged returns the frames of the log as they came.
func logged(frames []sdk.Frame) []string {
	var out []string
	for _, f := range frames {
		if f.Seq > 0 {
			out = append(out, string(f.Raw))
		}
	}
	return out
}

// listed returns the frames within the lists of notices.
func listed(t *testing.T, frames []sdk.Frame) []string {
	t.Helper()
	var out []string
	for _, f := range frames {
		list := sdk.As[myagent.NoticeContent](f.Content).EventList
		require.LessOrEqual(t, len(list), 200)
		for _, raw := range list {
			out = append(out, string(raw))
		}
	}
	return out
}
