package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

// deleted has the session deleted and waits until nothing is left of it but its
// tombstone.
func (r *rig) deleted() {
	r.T.Helper()
	r.Command(cmd.Command{
		ID: "delete", Service: cmd.Session, Verb: cmd.Delete, Tenant: r.ref.Tenant, Key: r.ref.Entity, Time: time.Now(),
	}, nil)
	require.Eventually(r.T, func() bool {
		first, _, err := r.Log.Ends(r.Ctx, r.ref)
		return err == nil && first != nil && first.Type.Tombstone()
	}, maxWait, 5*time.Millisecond)
}

// settled checks that the workers are done, that nothing was given up, and that the
// tombstone has stayed alone.
func (r *rig) settled(w *worker.Service) {
	r.T.Helper()
	require.NoError(r.T, w.Drain(r.Ctx))
	first, last, err := r.Log.Ends(r.Ctx, r.ref)
	require.NoError(r.T, err)
	require.Equal(r.T, event.SessionDeleted, first.Type)
	require.Equal(r.T, first.Sequence, last.Sequence)
	for _, stream := range []string{subject.StreamDead, subject.StreamCommands} {
		require.Eventually(r.T, func() bool {
			s, err := r.Conn.JS().Stream(r.Ctx, stream)
			return err == nil && s.CachedInfo().State.Msgs == 0
		}, maxWait, 5*time.Millisecond, stream)
	}
}

// TestADeletionClosesEveryRequest: in every stage, and in a chat, the request to the
// model is closed at once.
func TestADeletionClosesEveryRequest(t *testing.T) {
	for stage, script := range map[string]scripted.Stages{
		event.StagePlanning:    {Plan: hanging},
		event.StageSolving:     {Solve: hanging},
		event.StageAggregation: {Aggregate: hanging},
		"":                     {Chat: hanging},
	} {
		t.Run("stage "+stage, func(t *testing.T) {
			r := newRig(t, script.Script())
			w, _ := r.worker("w1", nil)
			if stage == "" {
				r.ask("hello")
			} else {
				r.plan("hello; hi; list the files")
			}
			open := r.openRequests(stage)
			r.deleted()
			for _, x := range open {
				r.gone(x)
			}
			r.settled(w)
		})
	}
}

// TestNoToolStartsAfterADeletion: more calls than run at once are asked for. Those that
// run are stopped, the others never start, and none of their outcomes is written.
func TestNoToolStartsAfterADeletion(t *testing.T) {
	var calls []scripted.Call
	for i := range 12 {
		calls = append(calls, scripted.Call{ID: fmt.Sprint("c", i), Name: "bank_pay", Arguments: fmt.Sprintf(`{"amount":%d}`, i)})
	}
	r := newRig(t, scripted.Stages{Solve: scripted.Always(scripted.Stream(scripted.Calls(0, calls...)))}.Script())
	w, _ := r.worker("w1", nil)
	r.solve(event.RunSpec{Steps: []event.Step{{ID: "a", Title: "A"}}})
	for range 8 {
		<-r.paying
	}
	r.deleted()
	r.settled(w)
	require.EqualValues(t, 8, r.pays.Load(), "no more than ran at once")
}

// TestWorkOfADeletedSessionIsSettled: a work item that waits while its session is deleted
// is taken off the queue by the first worker, and neither tried again nor given up.
func TestWorkOfADeletedSessionIsSettled(t *testing.T) {
	r := newRig(t, hanging)
	r.ask("hello")
	r.Until(r.ref, event.RunStarted, 1)
	require.Eventually(t, func() bool {
		s, err := r.Conn.JS().Stream(r.Ctx, subject.StreamCommands)
		if err != nil {
			return false
		}
		info, err := s.Info(r.Ctx, jetstream.WithSubjectFilter(subject.CommandFilterAll(cmd.Worker)))
		return err == nil && len(info.State.Subjects) == 1
	}, maxWait, 5*time.Millisecond)
	r.deleted()
	w, _ := r.worker("w1", nil)
	require.Eventually(t, func() bool {
		s, err := r.Conn.JS().Stream(r.Ctx, subject.StreamCommands)
		return err == nil && s.CachedInfo().State.Msgs == 0
	}, maxWait, 5*time.Millisecond)
	r.settled(w)
	require.Empty(t, r.llm.Exchanges())
}
