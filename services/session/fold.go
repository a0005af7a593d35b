package session

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// folded is a session's log as this package sees it.
type folded struct {
	state   conversation.State
	upTo    uint64          // how much is known: see know
	former  uint64          // how much of that came with restored states
	events  map[string]bool // ids of the events that restored a state
	damaged bool            // an event could not be folded, and was passed over: see foldAny
	first   uint64
}

// everything has a state keep all runs: lists show them, an export takes as much of them as fits, and a deletion recalls all tasks.
const everything = -1

// fold folds the next event. In a log whose head has expired it skips events that refer to lost
// ones.
func (f *folded) fold(e event.Event) error {
	if f.first == 0 {
		f.first, f.events = e.Sequence, map[string]bool{}
		f.state.Keep(everything)
	}
	err := f.state.Apply(e)
	f.know(e)
	if f.first > 1 {
		return nil
	}
	return err
}

// foldAny is fold for a log that is deleted, whatever it holds.
func (f *folded) foldAny(e event.Event) error {
	if f.fold(e) != nil {
		f.damaged = true
	}
	return nil
}

// openLog returns the log of a session for a single use.
func (d *responder) openLog(log subject.Log, fold func(*folded, event.Event) error) *ledger.Log[folded] {
	return ledger.Open(ledger.Config[folded]{Store: d.log, Source: source, Now: d.now, Fold: fold}, log)
}

// know counts the events that the log knows: one per event, and for a restored state as many as
// were known at its export. An import compares states of a session that has moved and comes back by
// this count.
func (f *folded) know(e event.Event) {
	f.upTo++
	if f.upTo < e.Sequence {
		f.upTo = e.Sequence // the head has expired
	}
	if e.Type != event.SessionRestored {
		return
	}
	f.events[e.ID] = true
	if d, err := eventdata.As[event.SessionRestoredData](e); err == nil {
		f.upTo, f.former = max(f.upTo, d.ExportedSeq+1), max(f.former, d.ExportedSeq)
	}
}

// foldLog returns the fold of a session's log.
func foldLog(ctx context.Context, store *eventlog.Store, log subject.Log) (*folded, error) {
	var f folded
	err := readAll(ctx, store, log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		return f.fold(e.Event)
	})
	return &f, err
}

// readAll visits the events of a log after the position, oldest first. An error of visit ends it
// and is returned.
func readAll(ctx context.Context, store *eventlog.Store, log subject.Log, after eventlog.Cursor, visit func(*eventlog.Entry) error) error {
	for {
		err := store.Read(ctx, log, after, visit)
		var cut *eventlog.TruncatedError
		if !errors.As(err, &cut) || cut.First <= after.Seq+1 {
			return err
		}
		after = eventlog.Cursor{Seq: cut.First - 1}
	}
}

// source is the service in the events that it appends by itself.
const source = "waggle/session"
