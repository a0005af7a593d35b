package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/worker/card"
)

const twoTasks = `{"tasks":[{"id":"a","title":"A"},{"id":"b","title":"B","dependencies":["a"]}]}`

func planned(confirm bool) cmd.UserMessage {
	return cmd.UserMessage{Content: "build it", RunSpec: event.RunSpec{Mode: event.ModePlan, ConfirmPlan: &confirm}}
}

// TestStages: a message leads through plan, tasks in their order, and the aggregate,
// each job handed to the workers once.
func TestStages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{})
	items := r.items()
	r.open(log)
	r.command(log, cmd.SendMessage, "m1", planned(false))
	for _, text := range []string{twoTasks, "did A", "did B", "A and B"} {
		r.work(log, items, text)
	}
	events := r.Until(log, event.RunCompleted, 1)
	d, err := event.As[event.RunCompletedData](events[len(events)-1])
	require.NoError(t, err)
	require.Equal(t, "A and B", d.Content)
	require.Empty(t, items)
	for i, e := range events {
		require.EqualValues(t, i+1, e.Sequence)
	}
}

// TestRacingAnswers: of a hundred answers to one question one counts, and everybody
// else is told whose that was.
func TestRacingAnswers(t *testing.T) {
	t.Parallel()
	const racers = 100
	r := newRig(t)
	r.start("a", pipeline.Config{})
	r.start("b", pipeline.Config{})
	items := r.items()
	r.open(log)
	gateway := id.MustName("gw")
	directs := make(chan *nats.Msg, 2*racers)
	sub, err := r.Conn.NATS().ChanSubscribe(subject.DirectFilter(gateway), directs)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	require.NoError(t, r.Conn.NATS().Flush())
	r.command(log, cmd.SendMessage, "m1", planned(true))
	r.work(log, items, twoTasks)
	events := r.Until(log, event.InputRequested, 1)
	asked, err := event.As[event.InputRequestedData](events[len(events)-1])
	require.NoError(t, err)

	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			name := fmt.Sprint("r", i)
			r.commandFrom(log, cmd.Answer, name, cmd.AnswerQuestion{InputID: asked.InputID, Approved: i%2 == 0},
				subject.ReplyTo(gateway, id.MustName(name)))
		})
	}
	wg.Wait()
	told := map[string]bool{}
	var winner string
	for range racers - 1 {
		select {
		case m := <-directs:
			var e event.Event
			require.NoError(t, json.Unmarshal(m.Data, &e))
			require.Equal(t, event.CommandRefused, e.Type)
			require.Zero(t, e.Sequence)
			d, err := event.As[event.CommandRefusedData](e)
			require.NoError(t, err)
			require.Equal(t, "INPUT_ANSWERED", d.Code)
			_, connection, err := subject.ParseDirect(m.Subject)
			require.NoError(t, err)
			require.Equal(t, connection.String(), d.CommandID, "who asked is told")
			told[d.CommandID] = true
			if winner == "" {
				winner = d.AnsweredBy
			}
			require.Equal(t, winner, d.AnsweredBy)
		case <-time.After(maxWait):
			require.Fail(t, "somebody was not told", "%d were", len(told))
		}
	}
	require.Len(t, told, racers-1)
	answers := 0
	for _, e := range r.Until(log, event.InputAnswered, 1) {
		if e.Type == event.InputAnswered {
			answers++
			d, err := event.As[event.InputAnsweredData](e)
			require.NoError(t, err)
			require.Equal(t, winner, d.By)
			require.False(t, told[d.CommandID])
		}
	}
	require.Equal(t, 1, answers)
}

// TestDeadlinesComeByThemselves: the question expires without any further command.
func TestDeadlinesComeByThemselves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{ConfirmTimeout: time.Second})
	items := r.items()
	r.open(log)
	r.command(log, cmd.SendMessage, "m1", planned(true))
	r.work(log, items, twoTasks)
	events := r.Until(log, event.RunCompleted, 1)
	n := len(events)
	require.Equal(t, []event.Type{event.InputRequested, event.PlanCancelled, event.InputExpired, event.RunCompleted}, servicetest.Types(events[n-4:]))
	require.GreaterOrEqual(t, events[n-3].Time.Sub(events[n-4].Time), time.Second)
}

func TestAMissingCapabilityFailsTheJob(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{Tries: 1})
	r.open(log)
	r.command(log, cmd.SendMessage, "m1", cmd.UserMessage{RunSpec: event.RunSpec{
		Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A", Capability: "welding"}},
	}})
	events := r.Until(log, event.RunFailed, 1)
	for _, e := range events {
		if e.Type == event.JobFailed {
			d, err := event.As[event.JobFailedData](e)
			require.NoError(t, err)
			require.Equal(t, "NO_SUCH_AGENT", d.Code)
			return
		}
	}
	require.Fail(t, "no job failed", "%v", servicetest.Types(events))
}

func TestCommandsForUnknownSessionsAreGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{})
	other := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("nobody")}
	r.command(other, cmd.SendMessage, "m1", cmd.UserMessage{Content: "hello?"})
	require.Eventually(t, func() bool {
		s, err := r.Conn.JS().Stream(r.Ctx, subject.StreamDead)
		return err == nil && s.CachedInfo().State.Msgs == 1
	}, maxWait, 20*time.Millisecond)
	last, err := r.Log.Last(r.Ctx, other)
	require.NoError(t, err)
	require.Zero(t, last.Seq, "no log is begun for a session that does not exist")
}

func TestServiceIsAComponent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	n := 0
	lifecycletest.Exercise(t, func() lifecycle.Component {
		n++
		return r.service(fmt.Sprint("c", n), pipeline.Config{})
	})
}

// TestALateTakeIsRecalled: an agent of the swarm accepts a task of a session that was cancelled
// before the session knew the agent. Only the pipeline can recall the task.
func TestALateTakeIsRecalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{})
	r.open(log)
	recalls := make(chan cmd.Command, 10)
	w := command.NewWorkers(r.Conn, command.WorkersConfig{
		Service: cmd.Task, Instance: id.MustName("tester"), Concurrency: 1, Logger: zerolog.Nop(),
	}, func(_ context.Context, c cmd.Command, _ command.Delivery) error {
		recalls <- c
		return nil
	})
	require.NoError(t, w.Start(r.Ctx))
	t.Cleanup(w.Stop)
	r.command(log, cmd.SendMessage, "m1", cmd.UserMessage{RunSpec: event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A"}}}})
	events := r.Until(log, event.StepStarted, 1)
	d, err := event.As[event.StepStartedData](events[len(events)-1])
	require.NoError(t, err)
	r.command(log, cmd.Cancel, "k", cmd.CancelRun{})
	r.Until(log, event.RunCancelled, 1)
	r.command(log, cmd.AssignJob, "late", cmd.AssignedJob{
		JobRef: cmd.JobRef{RunID: d.RunID, JobID: d.JobID}, TaskID: "work_1", Agent: "welder", Attempt: 1,
	})
	select {
	case c := <-recalls:
		require.Equal(t, cmd.CancelTask, c.Verb)
		require.Equal(t, "work_1", c.Key.String())
	case <-time.After(maxWait):
		require.Fail(t, "the agent was not told")
	}
}

// TestAPlanSaysItsModel: as far as it is certain which one that will be.
func TestAPlanSaysItsModel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{})
	for i, want := range []string{"", "demo", ""} {
		if i > 0 {
			data, err := card.Card{Model: []string{"", "demo", "other"}[i]}.Data()
			require.NoError(t, err)
			_, err = r.Dir.Join(r.Ctx, directory.Member{What: directory.WhatService, Name: cmd.Worker, Instance: id.MustName(fmt.Sprint("w", i)), Data: data})
			require.NoError(t, err)
			require.Eventually(t, func() bool { return len(r.Dir.Members(directory.WhatService, cmd.Worker)) == i }, maxWait, time.Millisecond)
		}
		l := log
		l.Entity = id.EntityFromExternal(fmt.Sprint("s", i))
		r.open(l)
		r.command(l, cmd.SendMessage, fmt.Sprint("m", i), planned(false))
		events := r.Until(l, event.PlanStarted, 1)
		d, err := event.As[event.PlanStartedData](events[len(events)-1])
		require.NoError(t, err)
		require.Equal(t, want, d.Model)
	}
}
