package stream

import (
	"context"
	"slices"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Texts of the notices about workers.
const (
	noWorkerText   = "No worker is available to answer. The answer comes when a worker is back; you need not send anything again."
	workerBackText = "A worker is available again, and work goes on."
)

// standing is what a stream knows of the run that it shows, as far as it has shown it.
type standing struct {
	waits    bool // for a worker: a run is active and awaits no answer of people
	told     bool // that no worker is available
	known    bool // an event has said whether it waits
	recalled bool // the events before those that were shown have been asked
}

// follow takes note of an event.
func (w *standing) follow(e event.Event) {
	known := w.known
	w.known = true
	switch e.Type {
	case event.InputAnswered:
		d, err := event.As[event.InputAnsweredData](e)
		w.waits = err != nil || d.Scope != event.ScopeAgent // the agent continues
	case event.RunStarted, event.TeamResumed:
		w.waits = true
	case event.RunCompleted, event.RunFailed, event.RunCancelled, event.InputRequested, event.TeamPauseBegun, event.SessionClosed, event.TeamClosed:
		w.waits = false
	case event.TeamStatus:
		d, err := event.As[event.TeamStatusData](e)
		w.waits = err == nil && d.NewStatus == event.TeamRunning
	default:
		w.known = known
	}
}

// notice returns what has to be told, if anything has: the two notices in turns.
func (w *standing) notice(missing bool) (d event.NoticeData, due bool) {
	switch {
	case missing && w.waits && !w.told:
		w.told = true
		return event.NoticeData{Level: "warning", Code: event.NoWorker, Message: noWorkerText}, true
	case !missing && w.told:
		w.told = false
		return event.NoticeData{Level: "info", Code: event.WorkerBack, Message: workerBackText}, true
	}
	return d, false
}

// goesOn tells the client, who believes that no worker is available, of one as soon as
// its work is to be shown. The caller has locked.
func (s *Stream) goesOn(batch []*eventlog.Entry) {
	works := func(e *eventlog.Entry) bool { return e.Type == event.JobStarted }
	if s.stand.told && slices.ContainsFunc(batch, works) {
		d, _ := s.stand.notice(false)
		s.Binding.Notice(s, d)
	}
}

// TellWorkers tells the client when the run that the stream shows waits for a worker, and
// when it continues. missing says that no worker runs.
func (s *Stream) TellWorkers(missing bool) {
	switch s.Log.Kind {
	case id.KindSession, id.KindTeam, id.KindMember:
	default:
		return // agents of the swarm do the work
	}
	s.mu.Lock()
	if missing && !s.over && !s.stand.known && !s.stand.recalled {
		s.stand.recalled = true
		ctx := s.life()
		s.fetches.Go(func() { s.recall(ctx) })
	}
	d, due := s.stand.notice(missing)
	due = due && !s.over
	s.mu.Unlock()
	if due {
		s.Binding.Notice(s, d)
	}
}

// recall reads whether the run waits from the events before the one that the stream began
// with: its client has come back to it. A failure is made good at the next tick.
func (s *Stream) recall(ctx context.Context) {
	var before standing
	s.mu.Lock()
	from := s.from
	s.mu.Unlock()
	err := s.src.Loader.Do(ctx, func() error {
		_, err := ReadLeft(ctx, s.src.Log, s.Log, eventlog.Cursor{}, from, func(e *eventlog.Entry) error {
			before.follow(e.Event)
			return nil
		})
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.stand.recalled = false
	case !s.stand.known:
		s.stand.waits, s.stand.known = before.waits, true
	}
}
