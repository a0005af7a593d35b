// Package thread binds HTTP requests to threads of AG-UI: logs of sessions, whose frames depend on what came before. A request
// gets a projection of the log (package dialect/agui) at its position, and a feed that goes on with it.
package thread

import (
	"context"
	"errors"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect/agui"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// DefaultPatience is how long a request waits for its command to be taken or refused.
const DefaultPatience = 10 * time.Second

// Threads are the threads of a gateway. All methods are safe for concurrent use.
type Threads struct {
	g        *binding.Gateway
	states   *states
	patience time.Duration
}

// New returns the threads of a gateway.
func New(g *binding.Gateway, patience time.Duration) *Threads {
	if patience <= 0 {
		patience = DefaultPatience
	}
	return &Threads{g: g, states: newStates(g), patience: patience}
}

// Client is the client of a request.
type Client interface {
	binding.Identified
	// Command sends commands for the principal, if it may act.
	Command(ctx context.Context, replyTo string, cmds ...command.Command) error
}

// Place is the thread that a request is about.
type Place struct {
	Log     subject.Log
	Name    string // as the client writes it
	Variant agui.Variant
	To      transport.Transport // nil for requests without a stream
}

// exists returns the end of the thread's log. A thread that the client does not see does not exist.
func (t *Threads) exists(ctx context.Context, c Client, at Place) (last eventlog.Cursor, err error) {
	if last, err = t.end(ctx, c, at); err == nil && last.Seq == 0 {
		err = fault.New(fault.SessionNotFound)
	}
	return last, err
}

// end returns the end of the thread's log, zero if nobody has begun the thread.
func (t *Threads) end(ctx context.Context, c Client, at Place) (last eventlog.Cursor, err error) {
	if !c.Principal().Owns(at.Log) {
		return last, fault.New(fault.SessionNotFound)
	}
	if last, err = t.g.Log.Last(ctx, at.Log); err != nil || last.Seq == 0 {
		return last, err
	}
	seen, err := t.g.Sight.Sees(ctx, c.Principal(), at.Log)
	if err == nil && !seen {
		err = fault.New(fault.SessionNotFound)
	}
	return last, err
}

// Join shows a thread from where it stands, or behind after: up to the end of the run that is on, or, if follow is set, until
// the session ends.
func (t *Threads) Join(ctx context.Context, c Client, at Place, after *transport.Position, follow bool) (*Stream, error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, at)
	if s.all = true; follow {
		s.follows = true
	}
	if after != nil {
		return s, s.resume(ctx, *after, last)
	}
	if err := s.joins(ctx, last); err != nil {
		return nil, err
	}
	s.show(s.thread.Prelude())
	if !follow && s.thread.Open() == "" {
		s.finish()
	}
	return s, nil
}

// Again shows one run of a thread again, from its beginning or behind after. What comes before the run is in its first
// snapshot.
func (t *Threads) Again(ctx context.Context, c Client, at Place, runID string, after *transport.Position) (*Stream, error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, at)
	s.run = runID
	if after != nil {
		return s, s.resume(ctx, *after, last)
	}
	return s, s.again(ctx, last)
}

// again shows a run of the thread, which has to be known.
func (s *Stream) again(ctx context.Context, last eventlog.Cursor) error {
	var found agui.Stretch
	var known, waits bool
	err := s.t.states.at(ctx, s.at.Log, s.at.Variant, last, func(base *agui.Thread, end eventlog.Cursor) error {
		found, known = base.Stretch(s.run)
		waits = !known && base.Waits(agui.CommandID(s.run))
		s.thread, s.after = base.Clone(s.at.Name), end
		return nil
	})
	switch {
	case err != nil:
		return err
	case waits:
		s.show(s.thread.Waiting(agui.CommandID(s.run)))
		return nil
	case !known:
		return fault.New(fault.RunNotFound)
	case found.Ended > 0:
		if err := s.rewind(ctx, found.Ended-1); err != nil {
			return err
		}
	}
	s.show(s.thread.Prelude())
	return nil
}

// joins places the stream at the end of the log.
func (s *Stream) joins(ctx context.Context, last eventlog.Cursor) error {
	return s.t.states.at(ctx, s.at.Log, s.at.Variant, last, func(base *agui.Thread, end eventlog.Cursor) error {
		s.thread, s.after = base.Clone(s.at.Name), end
		return nil
	})
}

// resume places the stream behind a position: what follows is as if the stream had never broken.
func (s *Stream) resume(ctx context.Context, after transport.Position, last eventlog.Cursor) error {
	if after.Seq == 0 || after.Seq > last.Seq {
		return fault.Newf(fault.CursorInvalid, "This is not a position in the thread. Use the id of the last event that you received.")
	}
	upTo := after.Seq
	if after.Part > 0 {
		upTo, s.skip = after.Seq-1, after.Part
	}
	if err := s.rewind(ctx, upTo); err != nil {
		return err
	}
	if s.run != "" && s.ended(ctx, after, last) {
		s.over = true
	}
	return nil
}

// ended reports whether the run of the stream has ended at the position: nothing follows.
func (s *Stream) ended(ctx context.Context, after transport.Position, last eventlog.Cursor) (over bool) {
	_ = s.t.states.at(ctx, s.at.Log, s.at.Variant, last, func(base *agui.Thread, _ eventlog.Cursor) error {
		found, known := base.Stretch(s.run)
		over = known && found.Ended > 0 && (after.Seq > found.Ended || after.Seq == found.Ended && after.Part == 0)
		return nil
	})
	return over
}

// rewind places the stream behind the event with the sequence.
func (s *Stream) rewind(ctx context.Context, seq uint64) error {
	thread, end, err := s.t.states.before(ctx, s.at.Log, s.at.Variant, seq)
	if err != nil {
		return err
	}
	if thread.Seq() < seq {
		return fault.New(fault.HeadExpired)
	}
	s.thread, s.after = thread.Clone(s.at.Name), end
	return nil
}

// gone turns the reasons why a log cannot be read into faults.
func gone(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrDeleted):
		return fault.New(fault.SessionDeleted)
	case errors.Is(err, eventlog.ErrBeyondEnd):
		return fault.New(fault.CursorInvalid)
	case errors.Is(err, eventlog.ErrClosed):
		return fault.New(fault.Draining)
	}
	return err
}
