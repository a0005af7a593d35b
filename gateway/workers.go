package gateway

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pingEvery is the pause between two pings of the workers.
	pingEvery = time.Second
	// missedPings in a row mean that no worker runs: one ping may fall between the end of
	// a worker and the start of its successor.
	missedPings = 3
)

// workers knows whether any worker runs. The lease of a killed worker stays in the
// directory for half a minute; its subscription ends with its connection, so that a ping
// finds no responder at once.
type workers struct {
	missing  atomic.Bool
	answered bool // once
	missed   int  // pings in a row without a responder
}

// pingWorkers pings the workers until the gateway stops.
func (s *Server) pingWorkers() {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			s.checkWorkers()
		}
	}
}

// checkWorkers pings once if a client is connected that could be told: an installation at
// rest has nothing to do every second.
func (s *Server) checkWorkers() {
	s.mu.Lock()
	connected := len(s.conns) > 0
	s.mu.Unlock()
	if connected {
		s.pingWorker()
		return
	}
	s.workers.missed = 0
	s.workers.missing.Store(false)
}

// pingWorker pings once. It is a bare request, because one a second is no news for traces.
// An answer that stays away proves nothing while a worker is listed: it may be busy, or
// the bus down. A worker of the version before this one is listed and answers no ping.
func (s *Server) pingWorker() {
	ctx, cancel := context.WithTimeout(s.ctx, pingEvery)
	defer cancel()
	w := &s.workers
	_, err := s.dep.Conn.NATS().RequestWithContext(ctx, subject.RPC(command.Worker, command.PingWorker), nil)
	listed := len(s.dep.Directory.Members(directory.WhatService, command.Worker)) > 0
	switch {
	case err == nil:
		w.answered, w.missed = true, 0
		w.missing.Store(false)
		return
	case errors.Is(err, nats.ErrNoResponders) && (w.answered || !listed), errors.Is(err, context.DeadlineExceeded) && !listed && s.dep.Conn.Up():
		w.missed++
	}
	if w.missed >= missedPings {
		w.missing.Store(true)
	}
}

// Texts of the notices about workers.
const (
	noWorkerText   = "No worker is available to answer. The answer comes when one is back; nothing has to be sent again."
	workerBackText = "A worker is available again, and work goes on."
)

// standing is what a feed knows of the run that it shows, as far as it has shown it.
type standing struct {
	waits    bool // for a worker: a run is on, and no answer of people is awaited
	told     bool // that no worker is available
	known    bool // an event has said whether it waits
	recalled bool // the events before those that were shown have been asked
}

// follow takes note of an event.
func (w *standing) follow(e event.Event) {
	known := w.known
	w.known = true
	switch e.Type {
	case event.RunStarted, event.InputAnswered, event.TeamResumed:
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
func (f *feed) goesOn(batch []*eventlog.Entry) {
	works := func(e *eventlog.Entry) bool { return e.Type == event.JobStarted }
	if f.stand.told && slices.ContainsFunc(batch, works) {
		d, _ := f.stand.notice(false)
		f.tell(d)
	}
}

// tellWorkers tells the client when the run that the feed shows waits for a worker, and
// when it goes on.
func (f *feed) tellWorkers() {
	switch f.log.Kind {
	case id.KindSession, id.KindTeam, id.KindMember:
	default:
		return // agents of the swarm do the work
	}
	missing := f.c.s.workers.missing.Load()
	f.mu.Lock()
	if missing && !f.over && !f.stand.known && !f.stand.recalled {
		f.stand.recalled = true
		f.fetches.Go(f.recall)
	}
	d, due := f.stand.notice(missing)
	due = due && !f.over
	f.mu.Unlock()
	if due {
		f.tell(d)
	}
}

// errShown ends the reading of a log where its feed has begun.
var errShown = errors.New("the feed has shown what follows")

// recall reads whether the run waits from the events before the one that the feed began
// with: its client has come back to it. A failure is made good at the next tick.
func (f *feed) recall() {
	var before standing
	f.mu.Lock()
	from := f.from
	f.mu.Unlock()
	visit := func(e *eventlog.Entry) error {
		if e.Sequence > from {
			return errShown
		}
		before.follow(e.Event)
		return nil
	}
	err := f.c.s.loading(f.ctx, func() error {
		err := f.c.s.dep.Log.Read(f.ctx, f.log, eventlog.Cursor{}, visit)
		if gone, ok := errors.AsType[*eventlog.TruncatedError](err); ok {
			err = f.c.s.dep.Log.Read(f.ctx, f.log, eventlog.Cursor{Seq: gone.First - 1}, visit)
		}
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil && !errors.Is(err, errShown):
		f.stand.recalled = false
	case !f.stand.known:
		f.stand.waits, f.stand.known = before.waits, true
	}
}

// tell shows a notice that is in no log.
func (f *feed) tell(d event.NoticeData) {
	e, err := event.New(f.log, newID(), f.c.s.source, f.c.s.dep.Clock(), d)
	if err != nil {
		f.c.s.dep.Logger.Error().Err(err).Msg("encode a notice about workers")
		return
	}
	f.c.whisper(f.codec, f.log, e)
}
