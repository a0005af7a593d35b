package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Writer appends to one log. It is not safe for concurrent use. Any number of
// Writers, in any number of processes, may write the same log: nothing is lost,
// doubled or reordered, but each conflict costs two round trips, so a log should
// have one owner at a time.
type Writer struct {
	s       *Store
	log     subject.Log
	observe func(*Entry)
	at      Cursor // the last entry that passed observe
	synced  bool   // at was the end of the log when last heard of
	deleted bool   // the last entry is a tombstone
}

// Writer returns a writer of the log that has read nothing yet. observe, which may
// be nil, sees every entry of the log once, in order, whoever appended it, and is
// called on the goroutine that uses the Writer. If the head of the log has expired
// it sees the first entry that is left first.
func (s *Store) Writer(log subject.Log, observe func(*Entry)) *Writer {
	return &Writer{s: s, log: log, observe: observe}
}

// WriterAfter is Writer for whoever knows already what the log says up to a position: it
// reads on from there.
func (s *Store) WriterAfter(log subject.Log, after Cursor, observe func(*Entry)) *Writer {
	return &Writer{s: s, log: log, observe: observe, at: after}
}

// Seq returns the sequence of the last entry that passed observe.
func (w *Writer) Seq() uint64 { return w.at.Seq }

// Cursor returns the position of the last entry that passed observe.
func (w *Writer) Cursor() Cursor { return w.at }

// Sync reads from the Writer's position to the end of the log. Every event whose
// append had succeeded before the call has passed observe when Sync returns nil. It
// returns fault.BusUnavailable wrapped after Options.Retry of trouble, and
// ErrBeyondEnd if acknowledged events have been lost.
func (w *Writer) Sync(ctx context.Context) error {
	w.synced = false
	if _, err := w.sync(ctx, ""); err != nil {
		return err
	}
	w.synced = true
	return nil
}

// Deleted reports whether the log ends with a tombstone, as far as the Writer has read.
func (w *Writer) Deleted() bool { return w.deleted }

// sync reads to the end of the log as its leader knows it. Of a deleted log it takes
// the tombstone alone, whether or not the rest has been removed already.
func (w *Writer) sync(ctx context.Context, own string) (seen, error) {
	end, err := w.s.head(ctx, w.log)
	switch {
	case err != nil:
		return seen{}, err
	case end == nil:
		w.at.Stream = 0 // nothing there, or everything has expired: the next event is expected to be the first
		return seen{}, nil
	case end.Sequence < w.at.Seq:
		return seen{}, fmt.Errorf("%w: %s ends at %d, %d was acknowledged", ErrBeyondEnd, w.log, end.Sequence, w.at.Seq)
	case end.Type.Tombstone():
		return w.take([]*Entry{end}, own), nil
	}
	return w.readTo(ctx, end.Cursor(), own)
}

// readTo reads on until the position has been reached.
func (w *Writer) readTo(ctx context.Context, end Cursor, own string) (seen, error) {
	var all seen
	for w.at.Seq < end.Seq {
		entries, err := w.s.follow(ctx, w.log, w.at)
		if err != nil {
			return all, err
		}
		if len(entries) == 0 {
			return all, fmt.Errorf("%w: %s ended at %d and ends at %d", ErrBeyondEnd, w.log, end.Seq, w.at.Seq)
		}
		all.add(w.take(upTo(entries, end), own))
	}
	w.at.Stream = max(w.at.Stream, end.Stream)
	return all, nil
}

// seen says what reading on has brought to light.
type seen struct {
	own     *Entry // the entry with the wanted dedupe id
	foreign bool   // any other
}

func (s *seen) add(more seen) {
	if more.own != nil {
		s.own = more.own
	}
	s.foreign = s.foreign || more.foreign
}

// take passes entries to observe and looks for the own one.
func (w *Writer) take(entries []*Entry, own string) seen {
	var out seen
	for _, e := range entries {
		if e.Sequence <= w.at.Seq {
			continue
		}
		if e.DedupeID() == own {
			out.own = e
		} else {
			out.foreign = true
		}
		w.pass(e)
	}
	return out
}

func (w *Writer) pass(e *Entry) {
	w.at = e.Cursor()
	if e.Type.Tombstone() {
		w.deleted = true
		w.s.said.forget(w.log)
	}
	if w.observe != nil {
		w.observe(e)
	}
}

// Append calls decide and appends the events that it returns, in order. Each passes
// observe and is announced. When an event of somebody else turns up it passes
// observe and decide is called again, so decide must be a pure function of what
// observe has seen and return only what is still missing; no events mean that
// nothing is. Events that are in the log already, by their ids, count as appended.
//
// Append syncs first if the Writer has never been synced, or if the outcome of
// its last call is unknown. It returns decide's error unchanged,
// fault.BusUnavailable wrapped if one event could not be appended within
// Options.Retry, ErrRefused wrapped if the bus will never take it, ErrDeleted if the
// log was deleted and decide wants to append all the same, and ctx's error when ctx
// ends. After an error of the bus or of ctx the last event may or may not
// have been appended; a later Append with the same decide finds out.
func (w *Writer) Append(ctx context.Context, decide func() ([]event.Event, error)) error {
	if !w.synced {
		if err := w.Sync(ctx); err != nil {
			return err
		}
	}
	for {
		events, err := decide()
		if err != nil {
			return err
		}
		disturbed, err := w.putAll(ctx, events)
		if err != nil || !disturbed {
			return err
		}
	}
}

// putAll appends events until a foreign one turns up.
func (w *Writer) putAll(ctx context.Context, events []event.Event) (disturbed bool, err error) {
	for _, ev := range events {
		got, err := w.put(ctx, ev)
		if err != nil {
			return false, err
		}
		if got.foreign {
			return true, nil
		}
	}
	return false, nil
}

// put appends one event unless a foreign event turns up first. It returns the own
// entry if it is in the log, and whether a foreign one was seen.
func (w *Writer) put(ctx context.Context, ev event.Event) (seen, error) {
	if w.deleted {
		return seen{}, deleted(w.log)
	}
	if err := w.check(ev); err != nil {
		return seen{}, err
	}
	began := time.Now()
	a := &attempt{w: w, ev: ev, id: ev.DedupeID(), deadline: began.Add(w.s.opt.Retry)}
	got, err := a.run(ctx)
	if err != nil {
		w.synced = false // the event may be on its way
		return got, err
	}
	if got.own != nil {
		w.s.met.append.Observe(time.Since(began).Seconds())
		w.s.met.events.WithLabelValues(string(w.log.Kind), string(ev.Type)).Inc()
	}
	return got, nil
}

// check refuses events that would not be found again: id and type become a header
// and subject tokens.
func (w *Writer) check(ev event.Event) error {
	switch {
	case ev.Subject != w.log.Name():
		return fmt.Errorf("%w: event %q of log %q in log %q", ErrRefused, ev.ID, ev.Subject, w.log)
	case !printable(ev.ID) || len(ev.ID) > maxEventID:
		return fmt.Errorf("%w: event id %.80q", ErrRefused, ev.ID)
	case !legalType(string(ev.Type)):
		return fmt.Errorf("%w: event type %.80q", ErrRefused, ev.Type)
	}
	return nil
}

// maxEventID bounds event ids: dedupe ids live in the server's memory for two minutes.
const maxEventID = 256

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// legalType accepts dotted lower-case names: they become tokens of a subject.
func legalType(s string) bool {
	for token := range strings.SplitSeq(s, ".") {
		if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			return false
		}
	}
	return true
}

// errUnknown marks an attempt whose outcome is not known or that was refused for a
// reason that passes.
var errUnknown = errors.New("append not acknowledged")
