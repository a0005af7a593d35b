package thread

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Join shows a thread from where it stands, or after a position: up to the end of the active run, or, if follow is set, until
// the session ends.
func (t *Threads) Join(ctx context.Context, c *edge.Client, at Place, after *transport.Position, follow bool) (*Stream, error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, c, at)
	if s.all = true; follow {
		s.follows = true
	}
	if after != nil {
		return s, s.resume(ctx, *after, last)
	}
	t.g.Metrics.Resumes.WithLabelValues("cold").Inc()
	if err := s.joins(ctx, last); err != nil {
		return nil, err
	}
	if err := s.reserve(s.thread.Size()); err != nil {
		return nil, err
	}
	s.show(s.thread.Prelude())
	if !follow && s.thread.Open() == "" || s.thread.Closed() > 0 {
		s.finish()
	}
	return s, nil
}

// Again shows one run of a thread again, from its beginning or after a position. Its first snapshot has the messages
// before it.
func (t *Threads) Again(ctx context.Context, c *edge.Client, at Place, runID string, after *transport.Position) (*Stream, error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, c, at)
	s.run = runID
	if after != nil {
		return s, s.resume(ctx, *after, last)
	}
	return s, s.again(ctx, last)
}

// again shows a run of the thread, which has to be known.
func (s *Stream) again(ctx context.Context, last eventlog.Cursor) error {
	s.t.g.Metrics.Resumes.WithLabelValues("cold").Inc()
	var found fold.Stretch
	var known, waits bool
	err := s.t.folded(ctx, s.at, last, func(base *fold.Thread, end eventlog.Cursor) error {
		found, known = s.place(base)
		waits = !known && base.Waits(fold.CommandID(s.run))
		s.thread, s.after = base.Clone(s.at.Name), end
		return nil
	})
	if err == nil {
		err = s.reserve(s.thread.Size())
	}
	switch {
	case err != nil:
		return err
	case waits:
		s.show(s.thread.Waiting(fold.CommandID(s.run)))
		return nil
	case !known:
		return fault.New(fault.RunNotFound)
	case found.Ended > 0:
		return s.ended(ctx, found)
	}
	s.prelude()
	return nil
}

// ended shows a run that has ended, as it was before its last event.
func (s *Stream) ended(ctx context.Context, found fold.Stretch) error {
	if err := s.rewind(ctx, found.Ended-1); err != nil {
		return err
	}
	id := fold.CommandID(s.run)
	switch {
	case s.thread.Open() == s.run:
		s.prelude()
		return nil
	case s.thread.Waits(id): // it was cancelled before its turn
		s.show(s.thread.Waiting(id))
		return nil
	}
	if err := s.rewind(ctx, found.Ended); err != nil { // its last event is its first
		return err
	}
	if s.thread.Newest() != s.run {
		return fault.New(fault.RunNotFound)
	}
	s.prelude()
	return nil
}

// joins places the stream at the end of the log.
func (s *Stream) joins(ctx context.Context, last eventlog.Cursor) error {
	return s.t.folded(ctx, s.at, last, func(base *fold.Thread, end eventlog.Cursor) error {
		s.thread, s.after = base.Clone(s.at.Name), end
		return nil
	})
}

// resume places the stream behind a position: what follows is as if the stream had never broken.
func (s *Stream) resume(ctx context.Context, after transport.Position, last eventlog.Cursor) error {
	if after.Seq == 0 || after.Seq > last.Seq {
		return fault.Newf(fault.CursorInvalid, "This is not a position in the thread. Use the id of the last event that you received.")
	}
	s.t.g.Metrics.Resumes.WithLabelValues("warm").Inc()
	upTo := after.Seq
	if after.Part > 0 {
		upTo, s.skip = after.Seq-1, after.Part
	}
	if err := s.nothing(ctx, after, last); err != nil || s.over {
		return err
	}
	if err := s.reserve(s.size); err != nil {
		return err
	}
	return s.rewind(ctx, upTo)
}

// nothing notes whether nothing follows the position: the stream would have ended.
func (s *Stream) nothing(ctx context.Context, after transport.Position, last eventlog.Cursor) error {
	return s.t.folded(ctx, s.at, last, func(base *fold.Thread, _ eventlog.Cursor) error {
		s.size = base.Size()
		found, known := s.place(base)
		run := s.run
		if s.all {
			run = base.Newest()
			found, known = base.Stretch(run)
		}
		behind := known && found.Ended > 0 && (after.Seq > found.Ended || after.Seq == found.Ended && after.Part == 0)
		switch {
		case !s.all && !known && !base.Waits(fold.CommandID(run)):
			return fault.New(fault.RunNotFound)
		case base.Closed() > 0 && after.Seq >= base.Closed():
			s.over = true
		case s.follows:
		case behind, s.all && run == "":
			s.over = true
		}
		return nil
	})
}

// rewind places the stream behind the event with the sequence.
func (s *Stream) rewind(ctx context.Context, seq uint64) error {
	th, end, first, err := s.t.before(ctx, s.at, seq)
	if err != nil {
		return err
	}
	if th.Seq() < seq {
		s.t.g.Metrics.Expired.Inc()
		return Detailed{fault.New(fault.HeadExpired), map[string]any{"first": first}}
	}
	s.thread, s.after = th.Clone(s.at.Name), end
	s.name()
	return nil
}
