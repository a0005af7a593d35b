package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
)

var hanging = scripted.Always(scripted.Stream(scripted.Text("well, "), scripted.Hang()))

// TestCancelClosesEveryRequest cancels runs in each stage.
func TestCancelClosesEveryRequest(t *testing.T) {
	stages := map[string]scripted.Stages{
		event.StagePlanning:    {Plan: hanging},
		event.StageSolving:     {Solve: hanging},
		event.StageAggregation: {Aggregate: hanging},
	}
	for stage, script := range stages {
		t.Run(stage, func(t *testing.T) {
			const rounds = 2
			r := newRigWith(t, script.Script(), pipeline.Config{Backoff: time.Millisecond})
			r.worker("w1", nil)
			for i := range rounds {
				run := r.plan("hello; hi; list the files")
				open := r.openRequests(stage)
				r.command(cmd.Cancel, fmt.Sprint("stop-", i), cmd.CancelRun{})
				r.until(run, event.RunCancelled)
				for _, x := range open {
					r.gone(x)
				}
			}
		})
	}
}

// openRequests waits until all requests that a stage makes at once are open, and
// returns those that are: three tasks, or one plan or aggregate.
func (r *rig) openRequests(stage string) []*scripted.Exchange {
	r.T.Helper()
	want := 1
	if stage == event.StageSolving {
		want = 3
	}
	var open []*scripted.Exchange
	for n := 1; len(open) < want; n++ {
		x, err := r.llm.Exchange(r.Ctx, n)
		require.NoError(r.T, err)
		if x.Stage != stage {
			continue
		}
		select {
		case <-x.Gone(): // of an earlier round
		default:
			open = append(open, x)
		}
	}
	return open
}

// TestEveryEndOfAJobStopsItsWorker: a job does not only end with its run.
func TestEveryEndOfAJobStopsItsWorker(t *testing.T) {
	t.Run("a cancelled task", func(t *testing.T) {
		r := newRig(t, scripted.Stages{Tasks: map[string]scripted.Script{"a": hanging}}.Script())
		r.worker("w1", nil)
		run := r.solve(event.RunSpec{Steps: []event.Step{{ID: "a", Title: "A"}, {ID: "b", Title: "hello"}}})
		r.until(run, event.StepCompleted)
		x := r.exchange(event.StageSolving, "a")
		r.command(cmd.CancelStep, "stop-a", cmd.StepRef{StepID: "a"})
		r.gone(x)
		events := r.until(run, event.RunCompleted)
		require.Equal(t, 1, servicetest.Count(events, event.StepCancelled))
		require.Zero(t, servicetest.Count(events, event.AttemptRefused), "it was stopped, not turned away")
	})
	t.Run("a restarted task", func(t *testing.T) {
		r := newRig(t, scripted.Stages{Tasks: map[string]scripted.Script{
			"a": scripted.InTurn(scripted.Stream(scripted.Hang()), scripted.Stream(scripted.Text("done"))),
		}}.Script())
		r.worker("w1", nil)
		run := r.solve(event.RunSpec{Steps: []event.Step{{ID: "a", Title: "A"}}})
		x := r.exchange(event.StageSolving, "a")
		r.command(cmd.RestartStep, "again-a", cmd.StepRef{StepID: "a"})
		r.gone(x)
		require.Equal(t, "done", last[event.RunCompletedData](t, r.until(run, event.RunCompleted)).Content)
	})
	t.Run("another plan", func(t *testing.T) {
		r := newRig(t, scripted.Stages{Plan: scripted.InTurn(
			scripted.Stream(scripted.Hang()), scripted.Plan(event.Step{ID: "a", Title: "hello"}))}.Script())
		r.worker("w1", nil)
		run := r.plan("something")
		x := r.exchange(event.StagePlanning, "")
		r.command(cmd.Replan, "other", cmd.ReplanRun{Question: "something else"})
		r.gone(x)
		r.until(run, event.RunCompleted)
		again, err := r.llm.Exchange(r.Ctx, 2)
		require.NoError(t, err)
		require.Equal(t, "something else", again.Data.Question)
	})
}

// TestNoToolStartsAfterACancellation: more calls than run at once are asked for. When
// the run is cancelled, those that run are stopped, and the others never start.
func TestNoToolStartsAfterACancellation(t *testing.T) {
	var calls []scripted.Call
	for i := range 12 {
		calls = append(calls, scripted.Call{ID: fmt.Sprint("c", i), Name: "bank_pay", Arguments: fmt.Sprintf(`{"amount":%d}`, i)})
	}
	r := newRig(t, scripted.Stages{Solve: scripted.Always(scripted.Stream(scripted.Calls(0, calls...)))}.Script())
	w, _ := r.worker("w1", nil)
	run := r.solve(event.RunSpec{Steps: []event.Step{{ID: "a", Title: "A"}}})
	for range 8 {
		<-r.paying
	}
	r.command(cmd.Cancel, "stop", cmd.CancelRun{})
	r.until(run, event.RunCancelled)
	require.NoError(t, w.Drain(r.Ctx), "the worker is done with it")
	require.EqualValues(t, 8, r.pays.Load(), "no more than ran at once")
	ended := false
	require.NoError(t, r.Log.Read(r.Ctx, r.ref, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		require.False(t, ended && e.Type == event.ToolStarted, "a tool starts after the run was cancelled")
		ended = ended || e.Type == event.RunCancelled
		return nil
	}))
}
