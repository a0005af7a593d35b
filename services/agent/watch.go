package agent

import (
	"context"
	"sync/atomic"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// watch returns a context that ends when the log shows that this attempt must
// stop: the run was cancelled or claimed by another. It is what makes a
// cancellation close the model's HTTP request at once, instead of at the next
// append.
func (t *turn) watch(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &sentinel{runID: t.runID, attempt: t.attempt, cancel: cancel}
	w.log = t.s.deps.Log.Watch(t.log, t.writer.Cursor(), w)
	return ctx, func() {
		w.log.Close()
		cancel(nil)
	}
}

// sentinel is a log sink that looks only for the end of an attempt.
type sentinel struct {
	runID   string
	attempt int
	cancel  context.CancelCauseFunc
	log     *eventlog.Viewer
	seen    atomic.Uint64
}

// Deliver implements eventlog.Sink.
func (w *sentinel) Deliver(batch []*eventlog.Entry) int {
	for _, e := range batch {
		w.look(e.Event)
	}
	return len(batch)
}

func (w *sentinel) look(e event.Event) {
	w.seen.Store(e.Sequence)
	switch e.Type {
	case event.RunCancelled, event.RunFailed:
		var d struct {
			RunID string `json:"run_id"`
		}
		if e.Decode(&d) == nil && d.RunID == w.runID {
			w.cancel(errEnded)
		}
	case event.TurnStarted:
		d, err := event.As[event.TurnStartedData](e)
		if err == nil && d.RunID == w.runID && d.Attempt > w.attempt {
			w.cancel(errFenced)
		}
	}
}

// Truncated implements eventlog.Sink: only new events matter here.
func (w *sentinel) Truncated(uint64) {}

// CaughtUp implements eventlog.Sink.
func (w *sentinel) CaughtUp(uint64) {}

// Failed implements eventlog.Sink. Without the watch the fence still holds at
// every append, but a cancellation would wait for it: better to hand the run back.
func (w *sentinel) Failed(err error) { w.cancel(err) }
