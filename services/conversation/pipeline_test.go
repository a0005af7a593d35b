package conversation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
)

// ask opens a session and sends a message for a pipeline run.
func (w *world) ask(spec event.RunSpec) *conversation.Run {
	w.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
	if spec.Mode == "" {
		spec.Mode = event.ModePlan
	}
	w.do(command.SendMessage, "m1", command.UserMessage{Content: "build it", RunSpec: spec})
	return w.state.Run(conversation.RunID("m1"))
}

// claim lets a worker take up a job.
func (w *world) claim(u *conversation.Job) {
	w.append(fmt.Sprintf("claim.%d", len(w.log)), event.JobStartedData{
		RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt + 1, Worker: "w", Part: u.Part,
	})
}

// say lets a worker finish a job with a text, and report.
func (w *world) say(u *conversation.Job, text string) {
	if u.Attempt == 0 {
		w.claim(u)
	}
	w.append(fmt.Sprintf("said.%d", len(w.log)), event.MessageCompletedData{
		MessageID: fmt.Sprintf("msg.%d", len(w.log)), RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt,
		Role: event.RoleAssistant, Content: text, StopReason: "end", Part: u.Part,
	})
	w.ended(u)
}

// fail lets a worker report that a job failed.
func (w *world) fail(u *conversation.Job, retryable bool) {
	if u.Attempt == 0 {
		w.claim(u)
	}
	w.append(fmt.Sprintf("failed.%d", len(w.log)), event.JobFailedData{
		RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt, Code: "MODEL_FAILED", Message: "broken", Retryable: retryable, Part: u.Part,
	})
	w.ended(u)
}

func (w *world) ended(u *conversation.Job) {
	w.do(command.SettleJob, u.ID+".ended", command.JobRef{RunID: u.RunID, JobID: u.Part.JobID})
}

// job returns the one job that waits for a worker.
func (w *world) job() *conversation.Job {
	all := w.state.Unclaimed()
	require.Len(w.t, all, 1)
	return all[0]
}

// tasks are a plan in which b and c need a, and d needs both.
const tasks = `{"tasks":[{"id":"a","title":"A"},{"id":"b","title":"B","dependencies":["a"]},
	{"id":"c","title":"C","dependencies":["a"]},{"id":"d","title":"D","dependencies":["b","c"]}],"summary":"four letters"}`

// types returns the types of the events after the first n, without those of workers.
func (w *world) types(n int) string {
	var out []string
	for _, e := range w.log[n:] {
		switch e.Type {
		case event.JobStarted, event.MessageCompleted, event.MessageStarted, event.RunProgressed:
		default:
			out = append(out, string(e.Type))
		}
	}
	return strings.Join(out, " ")
}

func TestPlanSolveAggregate(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{})
	require.Equal(t, "session.created message.received run.started plan.started", w.types(0))
	n := len(w.log)
	w.say(w.job(), tasks)
	require.Equal(t, "plan.completed step.started", w.types(n))
	n = len(w.log)
	w.say(w.job(), "did A")
	require.Equal(t, "step.completed step.started step.started", w.types(n))
	both := w.state.Unclaimed()
	brief := w.state.Brief(both[1].ID, 1000)
	require.Equal(t, "C", brief.Step.Title)
	require.Equal(t, "did A", brief.Needs[0].Output)
	w.say(both[1], "did C")
	w.say(both[0], "did B")
	w.say(w.job(), "did D")
	n = len(w.log)
	last := w.job()
	require.Equal(t, event.StageAggregation, last.Part.Stage)
	require.Len(t, w.state.Brief(last.ID, 1000).Results, 4)
	w.say(last, "ABCD")
	require.Equal(t, "aggregate.completed pipeline.completed run.completed", w.types(n))
	require.Equal(t, conversation.Completed, r.Status)
	require.Equal(t, "ABCD", r.Answer)
	require.Equal(t, 4, w.state.Stats(w.now).TotalSteps)
	require.True(t, w.state.Due(w.now, rules).IsZero())
}

func TestAPlanIsConfirmedOnce(t *testing.T) {
	w := newWorld(t)
	yes := true
	w.ask(event.RunSpec{ConfirmPlan: &yes})
	w.say(w.job(), tasks)
	require.Empty(t, w.state.Unclaimed(), "nothing starts before the answer")
	in := w.state.Active().Plan.Asked
	require.Equal(t, in.Asked.Add(5*time.Minute), w.state.Due(w.now, rules))

	n := len(w.log)
	w.do(command.Answer, "r0", command.AnswerQuestion{InputID: in.ID, Approved: true, Steps: []byte(`"x"`)})
	require.Equal(t, "plan.invalid", w.types(n), "the question stays open")
	w.do(command.Answer, "r1", command.AnswerQuestion{InputID: in.ID, Approved: true, Modified: []byte(`[{"id":"a","title":"AA"}]`)})
	require.Equal(t, "AA", w.state.Active().Plan.Step("a").Title)
	require.Equal(t, "plan.invalid input.answered step.started", w.types(n))

	n = len(w.log)
	w.do(command.Answer, "r2", command.AnswerQuestion{InputID: in.ID, Approved: false})
	require.Empty(t, w.types(n))
	refused, ok := w.direct.(event.CommandRefusedData)
	require.True(t, ok)
	require.Equal(t, "INPUT_ANSWERED", refused.Code)
	require.Equal(t, "alice", refused.AnsweredBy)
	w.do(command.Answer, "r1", command.AnswerQuestion{InputID: in.ID, Approved: true})
	require.Nil(t, w.direct, "a repeat of the answer that counts is not refused")
	w.do(command.Answer, "r3", command.AnswerQuestion{InputID: "nonsense"})
	refused, _ = w.direct.(event.CommandRefusedData)
	require.Equal(t, "INPUT_NOT_FOUND", refused.Code)
}

func TestAPlanIsRejected(t *testing.T) {
	w := newWorld(t)
	yes := true
	r := w.ask(event.RunSpec{ConfirmPlan: &yes})
	w.say(w.job(), tasks)
	n := len(w.log)
	w.do(command.Answer, "r1", command.AnswerQuestion{InputID: r.Plan.Asked.ID, Feedback: "too dear"})
	require.Equal(t, "input.answered plan.cancelled run.completed", w.types(n))
	require.Equal(t, "rejected", r.Outcome)
	require.Contains(t, r.Answer, "too dear")
}

func TestAQuestionExpires(t *testing.T) {
	w := newWorld(t)
	yes := true
	r := w.ask(event.RunSpec{ConfirmPlan: &yes})
	w.say(w.job(), tasks)
	n := len(w.log)
	w.now = w.now.Add(5*time.Minute - time.Millisecond)
	require.Zero(t, w.do(command.CheckDeadlines, "d1", nil))
	w.now = w.now.Add(time.Millisecond)
	w.do(command.CheckDeadlines, "d2", nil)
	require.Equal(t, "plan.cancelled input.expired run.completed", w.types(n))
	require.Equal(t, "timeout", r.Outcome)
	w.do(command.Answer, "late", command.AnswerQuestion{InputID: r.Plan.Asked.ID, Approved: true})
	refused, _ := w.direct.(event.CommandRefusedData)
	require.Equal(t, "INPUT_EXPIRED", refused.Code)
}

func TestThePlannerMayTryAgainTwice(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{})
	n := len(w.log)
	w.say(w.job(), "I would rather not")
	require.Len(t, w.state.Brief(w.job().ID, 1000).Feedback, 1)
	w.say(w.job(), `{"tasks":[{"id":"a","title":"A","dependencies":["b"]},{"id":"b","title":"B","dependencies":["a"]}]}`)
	w.say(w.job(), "still not")
	require.Equal(t, "plan.invalid plan.started plan.invalid plan.started plan.invalid run.failed", w.types(n))
	require.Equal(t, conversation.Failed, r.Status)
}

func TestATaskIsTriedAgainThenGivenUp(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{})
	w.say(w.job(), `{"tasks":[{"id":"a","title":"A"},{"id":"b","title":"B","dependencies":["a"]},{"id":"c","title":"C"}]}`)
	jobs := w.state.Unclaimed()
	w.say(jobs[1], "did C")
	n := len(w.log)
	for i, pause := range []time.Duration{2 * time.Second, 4 * time.Second} {
		w.fail(w.state.Active().Plan.Step("a").Job, true)
		due := w.state.Due(w.now, rules)
		require.InDelta(t, pause.Seconds(), due.Sub(w.now).Seconds(), pause.Seconds()/10+0.001, "try %d", i+1)
		w.now = due.Add(-time.Millisecond)
		require.Zero(t, w.do(command.CheckDeadlines, fmt.Sprint("early", i), nil))
		w.now = due
		w.do(command.CheckDeadlines, fmt.Sprint("due", i), nil)
	}
	w.fail(w.state.Active().Plan.Step("a").Job, true)
	require.Equal(t, "job.failed retry.scheduled step.restarted step.started job.failed retry.scheduled step.restarted step.started "+
		"job.failed step.failed step.cancelled aggregate.started", w.types(n))
	w.say(w.job(), "only C")
	require.Equal(t, "partial_success", r.Outcome)
	require.Equal(t, "partial", w.state.Stats(w.now).CompletionStatus)

	// A restart of the failed task repairs the result, in a run of its own.
	n = len(w.log)
	w.do(command.RestartStep, "again", command.StepRef{StepID: "a"})
	notice, _ := w.direct.(event.NoticeData)
	require.True(t, *notice.OK)
	require.Equal(t, "run.started step.restarted step.restarted step.started", w.types(n))
	w.say(w.job(), "did A")
	w.say(w.job(), "did B")
	w.say(w.job(), "A, B and C")
	repaired := w.state.Runs()[1]
	require.Equal(t, "success", repaired.Outcome)
	require.Equal(t, "A, B and C", repaired.Answer)
}

func TestNoTaskSucceeds(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A"}, {ID: "b", Title: "B", Dependencies: []string{"a"}}}})
	n := len(w.log)
	w.fail(w.job(), false)
	require.Equal(t, "job.failed step.failed step.cancelled pipeline.completed error run.failed", w.types(n))
	require.Equal(t, conversation.Failed, r.Status)
	require.Contains(t, r.Answer, "broken")
}

func TestTasksAsGivenAreChecked(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A", Dependencies: []string{"zz"}}}})
	require.Equal(t, "session.created message.received run.started plan.invalid run.failed", w.types(0))
	require.Equal(t, conversation.Failed, r.Status)
}

func TestOneTaskNeedsNoAggregate(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A"}}})
	w.say(w.job(), "did A")
	require.Equal(t, "did A", r.Answer)
	require.NotContains(t, w.types(0), "aggregate")
}

func TestATaskRunsOutOfTime(t *testing.T) {
	w := newWorld(t)
	w.ask(event.RunSpec{Mode: event.ModeSteps, TimeoutSeconds: 10, Steps: []event.Step{{ID: "a", Title: "A"}}})
	u := w.job()
	w.now = w.now.Add(time.Hour)
	require.Zero(t, w.do(command.CheckDeadlines, "d0", nil), "the time of a task that nobody took up has not begun")
	w.claim(u)
	due := w.state.Due(w.now, rules)
	require.Equal(t, w.now.Add(10*time.Second), due)
	n := len(w.log)
	w.now = due
	w.do(command.CheckDeadlines, "d1", nil)
	require.Equal(t, "job.failed retry.scheduled", w.types(n))
	require.True(t, u.Ended)
}

func TestCancelSumsUp(t *testing.T) {
	w := newWorld(t)
	w.ask(event.RunSpec{})
	w.say(w.job(), tasks)
	w.claim(w.job())
	n := len(w.log)
	w.do(command.Cancel, "k", command.CancelRun{Pause: true})
	require.Equal(t, "step.cancelled step.cancelled step.cancelled step.cancelled run.cancelled session.paused", w.types(n))
	require.Zero(t, w.do(command.Cancel, "k", command.CancelRun{Pause: true}))
	n = len(w.log)
	w.do(command.SendMessage, "m2", command.UserMessage{Content: "go on", RunSpec: event.RunSpec{Mode: event.ModePlan}})
	require.Equal(t, "message.received run.started plan.started", w.types(n), "the session stays usable")
}

func TestBusy(t *testing.T) {
	for policy, want := range map[string]string{
		"":                    "message.refused",
		event.OnBusyReject:    "message.refused",
		event.OnBusyEnqueue:   "message.received",
		event.OnBusyInterrupt: "plan.cancelled run.cancelled message.received run.started plan.started",
	} {
		w := newWorld(t)
		w.ask(event.RunSpec{})
		n := len(w.log)
		w.do(command.SendMessage, "m2", command.UserMessage{Content: "me too", RunSpec: event.RunSpec{Mode: event.ModePlan, OnBusy: policy}})
		require.Equal(t, want, w.types(n), "on_busy %q", policy)
	}
}

func TestReplanAndCancelPlan(t *testing.T) {
	w := newWorld(t)
	yes := true
	r := w.ask(event.RunSpec{ConfirmPlan: &yes})
	w.say(w.job(), tasks)
	first := r.Plan.Asked
	n := len(w.log)
	w.do(command.Replan, "p1", command.ReplanRun{Question: "smaller"})
	require.Equal(t, "plan.cancelled plan.started", w.types(n))
	require.True(t, first.Over)
	require.Equal(t, "smaller", r.Plan.Question)
	w.say(w.job(), tasks)
	require.NotEqual(t, first.ID, r.Plan.Asked.ID)
	n = len(w.log)
	w.do(command.CancelPlan, "p2", command.CancelRun{Reason: "too large"})
	require.Equal(t, "plan.cancelled run.completed", w.types(n))
	dropped, err := event.As[event.PlanCancelledData](w.log[n])
	require.NoError(t, err)
	require.Equal(t, "user_request", dropped.Reason)
	require.Equal(t, "too large", dropped.Feedback, "the words of the person")
	w.do(command.CancelPlan, "p3", command.CancelRun{})
	notice, _ := w.direct.(event.NoticeData)
	require.False(t, *notice.OK)
	n = len(w.log)
	w.do(command.Replan, "p4", command.ReplanRun{})
	require.Equal(t, "message.received run.started plan.started", w.types(n))
	require.Equal(t, "smaller", w.state.Active().Plan.Question)
}

// TestAPlanNeedsAQuestion: what asks for one without any is a wrong request, and not too late.
func TestAPlanNeedsAQuestion(t *testing.T) {
	w := newWorld(t)
	w.do(command.Replan, "p", command.ReplanRun{})
	notice, _ := w.direct.(event.NoticeData)
	require.False(t, *notice.OK)
	require.Equal(t, string(fault.InvalidField), notice.Error)
}

func TestCancelAndRestartOfOneTask(t *testing.T) {
	w := newWorld(t)
	w.ask(event.RunSpec{})
	w.say(w.job(), tasks)
	w.say(w.job(), "did A")
	n := len(w.log)
	w.do(command.CancelStep, "k1", command.StepRef{StepID: "b"})
	require.Equal(t, "step.cancelled step.cancelled", w.types(n), "what depends on it goes with it")
	w.do(command.CancelStep, "k2", command.StepRef{StepID: "b"})
	notice, _ := w.direct.(event.NoticeData)
	require.False(t, *notice.OK)
	n = len(w.log)
	w.do(command.RestartStep, "k3", command.StepRef{StepID: "a"})
	require.Equal(t, "step.cancelled step.restarted step.restarted step.started", w.types(n),
		"c was being solved; b stays as a person left it, and d with it")
}

func TestASnapshotGoesOnElsewhere(t *testing.T) {
	w := newWorld(t)
	yes := true
	w.ask(event.RunSpec{ConfirmPlan: &yes})
	w.say(w.job(), tasks)
	asked := w.state.Active().Plan.Asked.ID
	there := w.moved(t)
	require.Equal(t, "session.restored input.requested", there.types(0))
	require.Equal(t, asked, there.state.Active().Plan.Asked.ID, "the question keeps its id")
	there.do(command.Answer, "yes", command.AnswerQuestion{InputID: asked, Approved: true})
	there.say(there.job(), "did A")
	there.claim(there.state.Unclaimed()[0])

	third := there.moved(t)
	require.Equal(t, "session.restored step.started step.started", third.types(0))
	for _, u := range third.state.Unclaimed() {
		third.say(u, "did it")
	}
	third.say(third.job(), "did D")
	third.say(third.job(), "all")
	require.Equal(t, "all", third.state.Runs()[0].Answer)
	require.Equal(t, 1, third.state.Stats(w.now).TotalMessages)
	require.Equal(t, 4, third.state.Stats(w.now).TotalSteps)
}

// moved restores the session's snapshot in a new log.
func (w *world) moved(t *testing.T) *world {
	snap := w.state.Snapshot(1000)
	raw, err := json.Marshal(snap)
	require.NoError(t, err)
	there := newWorld(t)
	there.now = w.now
	there.append("restored", event.SessionRestoredData{Dialect: "myagent", Stage: snap.Stage(), State: raw})
	there.do(command.Resume, "resume", nil)
	return there
}

func TestAnAgentOfTheSwarmSolvesATask(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A", Capability: "welding"}}})
	u := w.job()
	ref := command.JobRef{RunID: u.RunID, JobID: u.Part.JobID}
	w.do(command.AssignJob, "t1", command.AssignedJob{JobRef: ref, TaskID: "task-1", Agent: "welder", Attempt: 1})
	require.Zero(t, w.do(command.AssignJob, "t1", command.AssignedJob{JobRef: ref, TaskID: "task-1", Agent: "welder", Attempt: 1}))
	require.Empty(t, w.state.Unclaimed())
	w.do(command.AssignJob, "t2", command.AssignedJob{JobRef: ref, TaskID: "task-1", Agent: "other", Attempt: 2})
	n := len(w.log)
	w.do(command.FinishJob, "d1", command.FinishedJob{JobRef: ref, TaskID: "task-1", Output: "welded"})
	require.Equal(t, "step.completed pipeline.completed run.completed", w.types(n))
	require.Equal(t, "welded", r.Answer)
	require.Zero(t, w.do(command.FinishJob, "d2", command.FinishedJob{JobRef: ref, Output: "late"}))
	require.Empty(t, w.state.Abandoned())
}

func TestATaskOfTheSwarmIsRecalled(t *testing.T) {
	w := newWorld(t)
	w.ask(event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A", Capability: "welding"}}})
	u := w.job()
	ref := command.JobRef{RunID: u.RunID, JobID: u.Part.JobID}
	w.do(command.AssignJob, "t1", command.AssignedJob{JobRef: ref, TaskID: "task-1", Agent: "welder", Attempt: 1})
	w.do(command.Cancel, "k", command.CancelRun{})
	require.Len(t, w.state.Abandoned(), 1)
}

// TestTheStatsOfASessionAreNumbers: a model call counts from its beginning, also if it was stopped;
// zero usage is shown as zero, not left out.
func TestTheStatsOfASessionAreNumbers(t *testing.T) {
	w := newWorld(t)
	w.ask(event.RunSpec{})
	require.Zero(t, w.state.Stats(w.now).Usage.LLMCalls)
	u := w.job()
	w.claim(u)
	w.append("started", event.MessageStartedData{MessageID: "m", RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Part: u.Part})
	w.do(command.Cancel, "stop", command.CancelRun{Pause: true})
	for _, e := range w.log {
		if e.Type != event.SessionPaused {
			continue
		}
		d, err := event.As[event.SessionPausedData](e)
		require.NoError(t, err)
		require.Equal(t, 1, d.Stats.Usage.LLMCalls)
		require.NotNil(t, d.Stats.Usage.InputTokens)
		require.Zero(t, *d.Stats.Usage.InputTokens)
		require.Zero(t, *d.Stats.Usage.OutputTokens)
		return
	}
	require.Fail(t, "the session was not paused")
}
