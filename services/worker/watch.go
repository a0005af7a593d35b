package worker

import (
	"context"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// watch returns a context that ends when the log shows that this attempt must
// stop: its job has ended, with its run or by itself, or another attempt has claimed
// it. So a cancellation closes the model's HTTP request at once, instead of at the next append.
func (j *job) watch(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	state, seen := j.fold.lend()
	w := &sentinel{job: j.id, claim: j.claim, from: j.log.Cursor().Seq, state: state, cancel: cancel, answered: j.answered}
	v := j.s.deps.Log.Watch(j.log.Ref, seen, w)
	return ctx, func() {
		v.Close()
		j.fold.seen, j.fold.broken = v.Position(), w.broken
		cancel(nil)
	}
}

// sentinel is a log sink that looks only for the end of an attempt, and for answers of
// people. It folds the state itself, so that it sees every way in which a job can end.
type sentinel struct {
	job, claim string
	from       uint64 // sequence of the claim's event: events up to it were before this attempt
	state      *conversation.State
	cancel     context.CancelCauseFunc
	answered   chan<- struct{}
	broken     bool // the state lacks an event
}

// Deliver implements eventlog.Sink.
func (w *sentinel) Deliver(batch []*eventlog.Entry) int {
	for _, e := range batch {
		w.look(e.Event)
	}
	return len(batch)
}

func (w *sentinel) look(e event.Event) {
	if e.Type == event.MessageDelta || e.Type == event.ReasoningDelta { // most of the log, and they end no job
		return
	}
	if err := w.state.Apply(e); err != nil {
		w.broken = true
		w.cancel(err)
		return
	}
	switch u := w.state.Work(w.job); {
	case e.Sequence <= w.from:
	case over(u):
		w.cancel(errEnded)
	case u.Claim != w.claim:
		w.cancel(errFenced)
	case e.Type == event.InputAnswered:
		select {
		case w.answered <- struct{}{}:
		default: // the worker has not looked since the last one
		}
	}
}

// Truncated implements eventlog.Sink: only new events matter for this attempt.
func (w *sentinel) Truncated(uint64) { w.broken = true }

// CaughtUp implements eventlog.Sink.
func (w *sentinel) CaughtUp(uint64) {}

// Failed implements eventlog.Sink. Without the watch the fence still refuses appends, but a
// cancellation would wait for the next one. So the attempt ends, and another worker gets the job.
func (w *sentinel) Failed(err error) { w.cancel(err) }
