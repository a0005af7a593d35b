package e2e_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// diamond is ten tasks: one, then four beside each other, then two that each need
// two of them, then two, then one that needs both.
func diamond() []event.Step {
	after := map[string][]string{
		"b1": {"a"}, "b2": {"a"}, "b3": {"a"}, "b4": {"a"},
		"c1": {"b1", "b2"}, "c2": {"b3", "b4"}, "d1": {"c1"}, "d2": {"c1", "c2"}, "e": {"d1", "d2"},
	}
	list := tasks("a", "b1", "b2", "b3", "b4", "c1", "c2", "d1", "d2", "e")
	for i := range list {
		list[i].Dependencies = after[list[i].ID]
	}
	return list
}

// TestADiamondOfTenTasks: solved without planning, each after what it depends on,
// three at once where that can be and never four.
func TestADiamondOfTenTasks(t *testing.T) {
	f := newFleet(t, scripted.Stages{Solve: func(x *scripted.Exchange) scripted.Reply {
		return scripted.Stream(scripted.Every(30*time.Millisecond, "the ", "result ", "of ", x.Task))
	}}.Script())
	f.serve(everyone)
	f.serve("worker") // work is spread over workers
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Send(myagent.UserSolveTasks, map[string]any{
		"content":  map[string]any{"tasks": diamond()},
		"metadata": map[string]any{"parallelizable": true, "max_concurrent": 3, "timeout_seconds": 60},
	})
	answer := m.Until(myagent.AgentFinalAnswer)
	require.Contains(t, answer.Text(), "the result of e")
	require.Zero(t, count(m.Frames, myagent.PlanStart), "nothing is planned")

	events := history(t, addr, m.Session)
	done, open, most := map[string]bool{}, 0, 0
	for _, e := range events {
		switch e.Type {
		case event.StepStarted:
			d, err := event.As[event.StepStartedData](e)
			require.NoError(t, err)
			for _, dep := range d.Step.Dependencies {
				require.True(t, done[dep], "%s began before %s was done", d.StepID, dep)
			}
			open++
			most = max(most, open)
		case event.StepCompleted:
			d, err := event.As[event.StepCompletedData](e)
			require.NoError(t, err)
			done[d.StepID] = true
			open--
		}
	}
	require.Len(t, done, 10)
	require.Equal(t, 3, most, "as many at once as allowed, and no more")
	workers := map[string]bool{}
	for _, d := range all[event.JobStartedData](t, events) {
		workers[d.Worker] = true
	}
	t.Logf("10 tasks, %d at once at most, %d workers, %d events", most, len(workers), len(events))
}

// TestTasksFailAreCancelledAndRestarted: a task that fails takes what depends on it
// along and nothing else; restarted, it repairs the result.
func TestTasksFailAreCancelledAndRestarted(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	hold := make(chan struct{})
	f := newFleet(t, scripted.Stages{
		Tasks: map[string]scripted.Script{
			"bad": func(*scripted.Exchange) scripted.Reply {
				if broken.Load() {
					return scripted.Stream(scripted.Text("out of "), scripted.Cut())
				}
				return say("mended")
			},
			"slow": func(*scripted.Exchange) scripted.Reply {
				return scripted.Stream(scripted.Text("half "), scripted.Gate(hold), scripted.Text("done"))
			},
		},
		Solve: func(x *scripted.Exchange) scripted.Reply {
			var inputs []string
			for _, in := range x.Data.Inputs {
				inputs = append(inputs, in.Output)
			}
			return say("did " + x.Task + " with " + strings.Join(inputs, ", "))
		},
	}.Script())
	f.configure("pipeline: {retry_backoff: 50ms}\nworker: {model_tries: 1}\n")
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	list := tasks("good", "bad", "after", "slow")
	list[2].Dependencies = []string{"bad"}
	m.Send(myagent.UserSolveTasks, map[string]any{"content": map[string]any{"tasks": list}})

	// One is cancelled by hand while it is being solved.
	m.Find("text of slow", func(f sdk.Frame) bool {
		return f.Event == myagent.AgentPartialAnswer && f.Meta().TaskID == "slow"
	})
	m.Send(myagent.UserCancelTask, map[string]any{"content": map[string]any{"task_id": "slow"}})
	answer := m.Until(myagent.AgentFinalAnswer)
	close(hold)
	require.Equal(t, "partial_success", sdk.As[myagent.FinalAnswerMeta](answer.Metadata).Status)
	inOrder(t, m.Frames, myagent.ErrorExecution, myagent.ErrorRetryAttempt, myagent.SolverRestarted, myagent.SolverStepFailed, myagent.PipelineCompleted)
	require.Equal(t, 3, count(m.Frames, myagent.ErrorExecution), "three attempts")
	require.Equal(t, 1, count(m.Frames, myagent.SolverStepFailed))
	reasons := map[string]string{}
	for _, f := range m.Frames {
		if f.Event == myagent.SolverCancelled {
			reasons[sdk.As[myagent.TaskRef](f.Content).TaskID] = sdk.As[myagent.SolverCancelledMeta](f.Metadata).Reason
		}
	}
	require.Equal(t, map[string]string{"after": "dependency_failed", "slow": "user_request"}, reasons)
	noticed(t, m, "cancel_task", "slow")

	// Mended and restarted, it repairs the result.
	broken.Store(false)
	from := len(m.Frames)
	m.Send(myagent.UserRestartTask, map[string]any{"content": map[string]any{"task_id": "bad"}})
	answer = m.Until(myagent.AgentFinalAnswer)
	require.Contains(t, answer.Text(), "did after with mended")
	started := map[string]int{}
	for _, f := range m.Frames[from:] {
		if f.Event == myagent.SolverStart {
			started[f.Meta().TaskID]++
		}
	}
	require.Equal(t, map[string]int{"bad": 1, "after": 1}, started, "what was done is not done again")
	inOrder(t, m.Frames[from:], myagent.SolverRestarted, myagent.SolverCompleted, myagent.AggregateStart, myagent.PipelineCompleted, myagent.AgentFinalAnswer)
	noticed(t, m, "restart_task", "bad")

	// All of them fail.
	broken.Store(true)
	from = len(m.Frames)
	m.Send(myagent.UserSolveTasks, map[string]any{"content": map[string]any{"tasks": tasks("bad")}})
	answer = m.Until(myagent.AgentFinalAnswer)
	require.Equal(t, "failed", sdk.As[myagent.FinalAnswerMeta](answer.Metadata).Status)
	inOrder(t, m.Frames[from:], myagent.SolverStepFailed, myagent.PipelineCompleted, myagent.AgentError, myagent.AgentFinalAnswer)
}

// noticed requires that the sender is told that what it asked for was done.
func noticed(t *testing.T, m *client.RawMyAgent, action, task string) {
	t.Helper()
	is := func(f sdk.Frame) bool {
		return f.Event == myagent.SystemNotice && sdk.As[myagent.NoticeMeta](f.Metadata).Action == action
	}
	var f sdk.Frame
	if i := slices.IndexFunc(m.Frames, is); i >= 0 {
		f = m.Frames[i]
	} else {
		f = m.Find("notice of "+action, is)
	}
	meta := sdk.As[myagent.NoticeMeta](f.Metadata)
	require.Equal(t, task, meta.TaskID)
	require.True(t, *meta.OK)
}

// TestASolverIsKilled: another worker takes over its task, and all viewers are told.
func TestASolverIsKilled(t *testing.T) {
	var asked atomic.Int32
	f := newFleet(t, scripted.Stages{Solve: func(*scripted.Exchange) scripted.Reply {
		if asked.Add(1) == 1 {
			return scripted.Stream(scripted.Text("half a "), scripted.Hang())
		}
		return say("a whole result")
	}}.Script())
	f.serve("session,pipeline,tools")
	doomed := f.serve("worker")
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Send(myagent.UserSolveTasks, map[string]any{"content": map[string]any{"tasks": tasks("a")}})
	m.Until(myagent.AgentPartialAnswer)
	f.serve("worker")
	began := time.Now()
	doomed.Kill()
	require.Contains(t, m.Until(myagent.AgentFinalAnswer).Text(), "a whole result")
	t.Logf("taken over and answered %.1f s after the kill", time.Since(began).Seconds())
	require.Equal(t, 1, count(m.Frames, myagent.SolverRetry))
	require.Equal(t, 1, count(m.Frames, myagent.SolverCompleted))
	require.NotContains(t, m.Names(), myagent.SolverRestarted, "that is for attempts that failed")
}

// TestAModelThatDoesNotAnswer: a task that takes too long is given up, one try after
// the other, and so is a model that says nothing.
func TestAModelThatDoesNotAnswer(t *testing.T) {
	f := newFleet(t, scripted.Stages{Tasks: map[string]scripted.Script{
		"endless": scripted.Always(scripted.Stream(scripted.Every(50*time.Millisecond, words(1000)...))),
		"mute":    scripted.Always(scripted.Stream(scripted.Hang())),
	}}.Script())
	f.configure("pipeline: {retry_backoff: 50ms, task_attempts: 2}\nworker: {job_timeout: 10s}\n")
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	for task, told := range map[string]string{"endless": myagent.ErrorTimeout, "mute": myagent.AgentTimeout} {
		from := len(m.Frames)
		metadata := map[string]any{}
		if task == "endless" {
			metadata["timeout_seconds"] = 5 // the task's own limit, before the worker's and after the first words
		}
		m.Send(myagent.UserSolveTasks, map[string]any{"content": map[string]any{"tasks": tasks(task)}, "metadata": metadata})
		answer := m.Until(myagent.AgentFinalAnswer)
		require.Equal(t, "failed", sdk.As[myagent.FinalAnswerMeta](answer.Metadata).Status)
		require.Equal(t, 2, count(m.Frames[from:], told), "both attempts at %s: %s", task, client.Names(m.Frames[from:]))
	}
}
