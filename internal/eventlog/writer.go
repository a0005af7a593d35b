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

// Writer appends to one log. It is not safe for concurrent use. Any number of Writers, in any number of processes,
// may write the same log: events are not lost, duplicated or reordered, but each conflict costs two round trips, so a
// log should have one owner at a time.
type Writer struct {
	s       *Store
	log     subject.Log
	observe func(*Entry)
	at      Cursor // the last entry that passed observe
	synced  bool   // at was the end of the log at the last answer
	shared  bool   // the last entry that was read from the stream is of another process
	deleted bool   // the last entry is a tombstone
}

// Writer returns a writer of the log that has read nothing yet. observe, which may be nil, receives every entry of
// the log once, in order, including those of other writers, on the goroutine that uses the Writer. If the head of the
// log has expired it begins with the first remaining entry.
func (s *Store) Writer(log subject.Log, observe func(*Entry)) *Writer {
	return &Writer{s: s, log: log, observe: observe}
}

// WriterAfter is Writer for a caller that already knows the log up to a position: it reads on from there.
func (s *Store) WriterAfter(log subject.Log, after Cursor, observe func(*Entry)) *Writer {
	return &Writer{s: s, log: log, observe: observe, at: after}
}

// Seq returns the sequence of the last entry that passed observe.
func (w *Writer) Seq() uint64 { return w.at.Seq }

// Cursor returns the position of the last entry that passed observe.
func (w *Writer) Cursor() Cursor { return w.at }

// Sync reads from the Writer's position to the end of the log. Every event whose append succeeded before the call has
// passed observe when Sync returns nil. It returns fault.BusUnavailable wrapped if the bus fails for Options.Retry,
// and ErrBeyondEnd if acknowledged events have been lost.
func (w *Writer) Sync(ctx context.Context) error {
	w.synced = false
	if _, err := w.sync(ctx, ""); err != nil {
		return err
	}
	w.synced = true
	return nil
}

// SyncAfter is Sync for a Writer that has read nothing yet and a caller that may know a part of the log. known is told the end of
// a log that has events, and returns the position up to which the caller knows it, which is not beyond that end.
func (w *Writer) SyncAfter(ctx context.Context, known func(end Cursor) Cursor) error {
	w.synced = false
	end, err := w.s.head(ctx, w.log)
	if err != nil {
		return err
	}
	if end != nil && !end.Type.Tombstone() {
		w.at = known(end.Cursor())
	}
	if _, err := w.syncTo(ctx, end, ""); err != nil {
		return err
	}
	w.synced = true
	return nil
}

// SyncTo is Sync for a caller that needs the log only up to a position that the log has, such as that of the events which a
// command follows from. It may leave out later events; an append meets those. It does not ask the stream's leader if this
// process has written the events up to the position, or any replica has them.
func (w *Writer) SyncTo(ctx context.Context, end Cursor) error {
	if w.synced && w.at.Seq >= end.Seq && end.Seq > 0 {
		return nil
	}
	if w.synced && w.reach(ctx, end) {
		return nil
	}
	return w.Sync(ctx)
}

// Recall takes what this process has appended to the log since, and reports whether that is likely the end of the log: the last
// event was appended here, and none that was read from the stream before was of another process. An Append that follows needs no
// Sync, because it finds out; everything else does.
func (w *Writer) Recall() bool {
	if !w.synced || w.shared || w.deleted {
		return false
	}
	later, known := w.s.recent.since(w.log, w.at)
	for _, e := range later {
		w.pass(e)
	}
	return known && !w.deleted
}

// reach reads up to the position without the leader, and reports whether it got there.
func (w *Writer) reach(ctx context.Context, end Cursor) bool {
	if known := w.s.recent.between(w.log, w.at.Seq, end); known != nil {
		w.take(known, "")
		return true
	}
	if w.at.Stream == 0 || end.Seq > w.at.Seq+pageCount {
		return false
	}
	p, err := w.s.readPage(ctx, w.log, w.at, pageCount)
	if err != nil || len(p.entries) == 0 || p.entries[0].Sequence != w.at.Seq+1 {
		return false
	}
	w.take(p.entries, "")
	return w.at.Seq >= end.Seq
}

// Deleted reports whether the log ends with a tombstone, as far as the Writer has read.
func (w *Writer) Deleted() bool { return w.deleted }

// sync reads to the end of the log as its leader knows it. Of a deleted log it takes only the tombstone, whether or
// not the rest has been removed already.
func (w *Writer) sync(ctx context.Context, own string) (seen, error) {
	end, err := w.s.head(ctx, w.log)
	if err != nil {
		return seen{}, err
	}
	return w.syncTo(ctx, end, own)
}

func (w *Writer) syncTo(ctx context.Context, end *Entry, own string) (seen, error) {
	switch {
	case end == nil:
		w.at.Stream = 0 // empty or completely expired: the next event must be the first
		return seen{}, nil
	case end.Sequence < w.at.Seq:
		return seen{}, fmt.Errorf("%w: %s ends at %d, %d was acknowledged", ErrBeyondEnd, w.log, end.Sequence, w.at.Seq)
	case end.Type.Tombstone():
		return w.take([]*Entry{end}, own), nil
	}
	return w.readTo(ctx, end.Cursor(), own)
}

// readTo reads on until it reaches the position.
func (w *Writer) readTo(ctx context.Context, end Cursor, own string) (seen, error) {
	if w.at.Seq > 0 { // of a log that was never read, the head may have expired since
		if known := w.s.recent.between(w.log, w.at.Seq, end); known != nil {
			return w.take(known, own), nil
		}
	}
	var all seen
	for w.at.Seq < end.Seq {
		entries, err := w.s.follow(ctx, w.log, w.at, readCount)
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

// seen is the result of reading on.
type seen struct {
	own     *Entry // the entry with the wanted dedupe id
	foreign bool   // any other entry
}

func (s *seen) add(more seen) {
	if more.own != nil {
		s.own = more.own
	}
	s.foreign = s.foreign || more.foreign
}

// take passes entries that were read to observe, and looks for the own one.
func (w *Writer) take(entries []*Entry, own string) seen {
	var out seen
	if n := len(entries); n > 0 {
		_, here := w.s.recent.since(w.log, entries[n-1].Cursor())
		w.shared = !here
	}
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
		w.s.recent.forget(w.log)
	}
	if w.observe != nil {
		w.observe(e)
	}
}

// Append calls decide and appends the returned events, in order. Each passes observe and is announced. When a foreign
// event appears it passes observe, and Append calls decide again. So decide must be a pure function of the entries
// that observe has seen, and return only the missing events, or none when the log is complete. Events whose ids the
// log already has count as appended.
//
// Append syncs first if the Writer has never been synced, or if the outcome of its last call is unknown. It returns
// decide's error unchanged, fault.BusUnavailable wrapped if it could not append one event within Options.Retry,
// ErrRefused wrapped if the bus will never take it, ErrDeleted if the log was deleted and decide still returns
// events, and ctx's error when ctx ends. After an error of the bus or of ctx the last event may or may not be in the
// log; a later Append with the same decide finds out.
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

// putAll appends events until a foreign one appears.
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

// put appends one event unless a foreign event appears first. It returns the own entry if the log has it, and whether
// a foreign one was seen.
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

// check refuses events that could not be found again: id and type become a header and subject tokens.
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

// errUnknown marks an attempt with an unknown outcome, or one that was refused for a transient reason.
var errUnknown = errors.New("append not acknowledged")
