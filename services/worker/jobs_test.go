package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/worker"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// plan sends a message that is to be planned, and returns the id of its run.
func (r *rig) plan(text string) string {
	return r.send1(cmd.UserMessage{Content: text, RunSpec: event.RunSpec{Mode: event.ModePlan}})
}

// solve sends tasks, and returns the id of their run.
func (r *rig) solve(spec event.RunSpec) string {
	spec.Mode = event.ModeSteps
	return r.send1(cmd.UserMessage{Content: "do these", RunSpec: spec})
}

func (r *rig) send1(m cmd.UserMessage) string {
	r.T.Helper()
	r.n++
	commandID := fmt.Sprint("msg-", r.n)
	r.command(cmd.SendMessage, commandID, m)
	return runID(commandID)
}

// exchange waits for the first request of a stage and task.
func (r *rig) exchange(stage, task string) *scripted.Exchange {
	r.T.Helper()
	x, err := r.llm.Find(r.Ctx, func(x *scripted.Exchange) bool { return x.Stage == stage && x.Task == task })
	require.NoError(r.T, err, "no request of stage %s, task %q", stage, task)
	return x
}

// gone waits until the client has closed a request.
func (r *rig) gone(x *scripted.Exchange) {
	r.T.Helper()
	select {
	case <-x.Gone():
	case <-time.After(maxWait):
		require.Fail(r.T, "the model's request stays open", "stage %s, task %q", x.Stage, x.Task)
	}
}

// all returns the data of the events of a type.
func all[T event.Data](t testing.TB, events []event.Event) []T {
	t.Helper()
	var zero T
	var out []T
	for _, e := range events {
		if e.Type == zero.EventType() {
			d, err := event.As[T](e)
			require.NoError(t, err)
			out = append(out, d)
		}
	}
	return out
}

func TestAPipelineRun(t *testing.T) {
	r := newRig(t, scripted.Smart())
	r.worker("w1", func(c *worker.Config) {
		c.MaxTokens, c.System = 500, "You work for Bees & Co."
		c.Prices = worker.Prices{"x": {InputPerMillion: 1, OutputPerMillion: 2}}
	})
	run := r.plan("list the files; then read notes.md")
	events := r.until(run, event.RunCompleted)
	answer := last[event.RunCompletedData](t, events)
	require.Contains(t, answer.Content, "buy milk")
	require.Equal(t, "success", answer.Outcome)
	require.NotNil(t, answer.Usage.CostUSD, "every message has a price")
	require.Positive(t, *answer.Usage.CostUSD)

	jobs := map[string]event.Part{}
	for _, d := range all[event.JobStartedData](t, events) {
		require.NotEmpty(t, d.JobID)
		jobs[d.JobID] = d.Part
		require.Equal(t, "openai:x", d.Model)
		require.Equal(t, 500, d.MaxTokens)
		require.Equal(t, 3, d.MaxAttempts)
	}
	require.Len(t, jobs, 4, "a plan, two tasks, an aggregate")
	written := map[string]string{}
	for _, d := range all[event.MessageDeltaData](t, events) {
		require.Equal(t, jobs[d.JobID], d.Part)
		written[d.Stage] += d.Text
	}
	require.Empty(t, written[event.StagePlanning], "a plan is nothing to show while it is written")
	require.Equal(t, answer.Content, written[event.StageAggregation])
	require.Equal(t, 6, servicetest.Count(events, event.MessageCompleted), "a plan, two of each task, an aggregate")
	require.Equal(t, 6, servicetest.Count(events, event.UsageRecorded))
	for _, d := range all[event.ToolCalledData](t, events) {
		require.Equal(t, jobs[d.JobID], d.Part)
		require.NotEmpty(t, d.StepID)
	}
	r.asked(jobs)
}

// asked checks what the model was told in each stage.
func (r *rig) asked(jobs map[string]event.Part) {
	r.T.Helper()
	planner := r.exchange(event.StagePlanning, "")
	require.NotNil(r.T, planner.Prompt.Schema)
	require.Empty(r.T, planner.Prompt.Tools, "a planner does nothing")
	require.Contains(r.T, strings.Join(planner.Data.Tools, "\n"), "bank_pay: pays once", "but it knows what others can do")
	second := r.exchange(event.StageSolving, "task_2")
	require.NotEmpty(r.T, second.Prompt.Tools)
	require.Equal(r.T, "task_1", second.Data.Inputs[0].ID)
	require.Contains(r.T, second.Data.Inputs[0].Output, "notes.md")
	sum := r.exchange(event.StageAggregation, "")
	require.Empty(r.T, sum.Prompt.Tools)
	require.Nil(r.T, sum.Prompt.Schema)
	require.Len(r.T, sum.Data.Results, 2)
	for _, x := range r.llm.Exchanges() {
		require.Contains(r.T, x.Prompt.System, "Bees & Co.")
	}
	stages := map[string]int{}
	for _, p := range jobs {
		stages[p.Stage]++
	}
	require.Equal(r.T, map[string]int{event.StagePlanning: 1, event.StageSolving: 2, event.StageAggregation: 1}, stages)
}

func TestTheDemoModelPlansAndSolves(t *testing.T) {
	r := newRig(t, scripted.Smart())
	r.workerOf("w1", demo.New(), nil)
	r.workerOf("w2", demo.New(), nil)
	run := r.plan("write hello to a.txt and then read it, and what is 6*7?")
	events := r.until(run, event.RunCompleted)
	answer := last[event.RunCompletedData](t, events).Content
	require.Contains(t, answer, "a.txt says: hello")
	require.Contains(t, answer, "6*7 = 42")
	require.Equal(t, 3, servicetest.Count(events, event.StepCompleted))
	require.Nil(t, last[event.RunCompletedData](t, events).Usage.CostUSD)
	r.until(r.ask("what does it say?"), event.RunCompleted) // the chat continues after it
}

func TestAPlannerIsToldWhatWasWrong(t *testing.T) {
	r := newRig(t, scripted.Stages{Plan: scripted.InTurn(
		scripted.Stream(scripted.Text("I would rather not.")),
		scripted.Stream(scripted.Calls(9, call("workspace_list_files", `{}`))),
		scripted.Plan(event.Step{ID: "only", Title: "hello"}),
	)}.Script())
	r.worker("w1", nil)
	events := r.until(r.plan("hello"), event.RunCompleted)
	require.Equal(t, 1, servicetest.Count(events, event.PlanInvalid))
	require.Zero(t, servicetest.Count(events, event.ToolCalled), "a planner's tool calls are refused")
	failed := all[event.JobFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ModelBadReply), failed[0].Code)
	require.Equal(t, event.StagePlanning, failed[0].Stage)
	require.True(t, failed[0].Retryable)
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, strings.Join(x.Data.Feedback, "\n"), "This text holds no plan")
}

// TestATaskIsTakenOver: the worker that solves a task goes away; another starts the
// task's attempt again and finishes it.
func TestATaskIsTakenOver(t *testing.T) {
	hang := scripted.Stream(scripted.Text("half a"), scripted.Hang())
	r := newRig(t, scripted.Stages{Solve: scripted.InTurn(hang, scripted.Stream(scripted.Text("whole result")))}.Script())
	w1, _ := r.worker("w1", nil)
	run := r.solve(event.RunSpec{Steps: []event.Step{{ID: "a", Title: "A"}}})
	r.until(run, event.MessageDelta)
	r.worker("w2", nil)
	w1.Stop()
	r.gone(r.exchange(event.StageSolving, "a"))
	events := r.until(run, event.RunCompleted)
	require.Equal(t, "whole result", last[event.RunCompletedData](t, events).Content)
	claims := all[event.JobStartedData](t, events)
	require.Len(t, claims, 2)
	require.Equal(t, claims[0].Part, claims[1].Part)
	require.Equal(t, []string{"w1", "w2"}, []string{claims[0].Worker, claims[1].Worker})
	require.True(t, claims[1].Resumed)
	discarded := all[event.MessageDiscardedData](t, events)
	require.Len(t, discarded, 1)
	require.Equal(t, claims[0].Part, discarded[0].Part)
	require.Equal(t, 1, servicetest.Count(events, event.StepStarted), "it is the same attempt at the task")
}

// TestManyTasksAtOnce has two workers write into one log side by side: every job's
// text is whole, and its tool calls have ids of their own although the model numbers
// them alike.
func TestManyTasksAtOnce(t *testing.T) {
	words := scripted.Words(strings.Repeat("so many words ", 20))
	r := newRig(t, scripted.Stages{Solve: func(x *scripted.Exchange) scripted.Reply {
		if x.Prompt.Messages[len(x.Prompt.Messages)-1].Role == model.RoleTool {
			return scripted.Stream(scripted.Text(words...))
		}
		return scripted.Stream(scripted.Text(words...), scripted.Calls(0, call("workspace_list_files", `{}`)))
	}}.Script())
	r.worker("w1", nil)
	r.worker("w2", nil)
	var tasks []event.Step
	for i := range 8 {
		tasks = append(tasks, event.Step{ID: fmt.Sprint("t", i), Title: "T"})
	}
	events := r.until(r.solve(event.RunSpec{Steps: tasks}), event.RunCompleted)
	require.Equal(t, "success", last[event.RunCompletedData](t, events).Outcome)
	said := map[string]string{}
	for _, d := range all[event.MessageDeltaData](t, events) {
		said[d.MessageID] += d.Text
	}
	for _, d := range all[event.MessageCompletedData](t, events) {
		require.Equal(t, d.Content, said[d.MessageID])
	}
	ids := map[string]bool{}
	for _, d := range all[event.ToolCompletedData](t, events) {
		require.False(t, ids[d.CallID])
		ids[d.CallID] = true
	}
	require.Len(t, ids, len(tasks))
}

func TestATaskThatTakesTooLong(t *testing.T) {
	hang := scripted.Stream(scripted.Text("well, "), scripted.Hang())
	r := newRig(t, scripted.Stages{Solve: scripted.InTurn(hang, scripted.Stream(scripted.Text("at last")))}.Script())
	r.worker("w1", nil)
	run := r.solve(event.RunSpec{Steps: []event.Step{{ID: "a", Title: "A"}}, TimeoutSeconds: int(brief.Seconds())})
	r.gone(r.exchange(event.StageSolving, "a"))
	events := r.until(run, event.RunCompleted)
	require.Equal(t, "at last", last[event.RunCompletedData](t, events).Content)
	failed := all[event.JobFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.TaskTimeout), failed[0].Code)
	require.Equal(t, 2, servicetest.Count(events, event.StepStarted))
}

func TestAWorkerThatTakesTooLong(t *testing.T) {
	r := newRigWith(t, scripted.Stages{Plan: scripted.Always(scripted.Stream(scripted.Hang()))}.Script(), pipeline.Config{Tries: 1})
	r.worker("w1", func(c *worker.Config) { c.JobTimeout = brief })
	events := r.until(r.plan("think for ever"), event.RunFailed)
	failed := all[event.JobFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ModelTimeout), failed[0].Code)
	require.EqualValues(t, brief.Seconds(), failed[0].TimeoutSeconds)
	require.Positive(t, failed[0].ElapsedMS)
	require.Equal(t, 1, failed[0].Attempt)
	r.gone(r.exchange(event.StagePlanning, ""))
}

// TestAProviderThatFails: the error of a task is its worker's last word.
func TestAProviderThatFails(t *testing.T) {
	r := newRig(t, scripted.Stages{Tasks: map[string]scripted.Script{
		"b": scripted.Always(scripted.Fail(401, "invalid_api_key", "secret-detail")),
	}}.Script())
	r.worker("w1", nil)
	events := r.until(r.solve(event.RunSpec{Steps: []event.Step{
		{ID: "a", Title: "hello"}, {ID: "b", Title: "B"}, {ID: "c", Title: "C", Dependencies: []string{"b"}},
	}}), event.RunCompleted)
	require.Equal(t, "partial_success", last[event.RunCompletedData](t, events).Outcome)
	failed := all[event.StepFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ModelKeyRefused), failed[0].Code)
	require.NotContains(t, failed[0].Message, "secret-detail")
	require.Equal(t, "secret-detail", all[event.JobFailedData](t, events)[0].Provider.Message)
	sum := r.exchange(event.StageAggregation, "")
	require.Equal(t, []string{"completed", "failed", "cancelled"},
		[]string{sum.Data.Results[0].Status, sum.Data.Results[1].Status, sum.Data.Results[2].Status})
}

func TestWorkersSayWhatTheyCanDo(t *testing.T) {
	r := newRig(t, scripted.Smart())
	require.Empty(t, card.Capabilities(r.Dir))
	r.worker("w1", nil)
	r.worker("w2", func(c *worker.Config) { c.Capabilities = []string{"maths", card.General} })
	require.Eventually(t, func() bool {
		return strings.Join(card.Capabilities(r.Dir), " ") == "general maths"
	}, maxWait, 10*time.Millisecond)
	r.until(r.plan("hello"), event.RunCompleted)
	require.Equal(t, []string{"maths"}, r.exchange(event.StagePlanning, "").Data.Capabilities)
}
