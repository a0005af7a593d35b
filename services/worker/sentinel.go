package worker

import (
	"context"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

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
	switch u := w.state.Job(w.job); {
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
