package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// snapshotVersion changes when the same events have another snapshot.
	snapshotVersion = 1
	// snapshotReach is how far before its end a snapshot of a conversation begins at least: the events that a page shows first.
	snapshotReach = 500
	// snapshotStretch is the number of events that are read at once to find where a snapshot begins.
	snapshotStretch = 1000
)

// showSnapshot answers with what a log has said up to one of its events.
func (a *API) showSnapshot(r *http.Request, p auth.Principal) (any, error) {
	log, first, last, err := a.namedLog(r, p)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(snapshot.Kinds(), log.Kind) {
		return nil, fault.Newf(fault.InvalidField, "The log of a %s has no snapshots.", log.Kind).At("kind")
	}
	at := last.Sequence
	if q := r.URL.Query(); q.Has("at") {
		if at, err = position(q.Get("at"), last.Sequence, "at"); err != nil {
			return nil, err
		}
	}
	if at < first.Sequence {
		return nil, fault.Newf(fault.HeadExpired, "History before seq %d has expired.", first.Sequence).At("at")
	}
	tag := fmt.Sprintf(`"%d.%d.%d"`, snapshotVersion, first.Sequence, at)
	return Tagged{Tag: tag, Make: func() (any, error) { return a.snapshotOf(r.Context(), log, first.Sequence, at) }}, nil
}

func (a *API) snapshotOf(ctx context.Context, log subject.Log, first, at uint64) (any, error) {
	base, err := a.baseOf(ctx, log, first, at)
	if err != nil {
		return nil, err
	}
	f, err := a.folded(ctx, log, base, at)
	if err != nil {
		return nil, err
	}
	body, err := snapshot.Canonical(f.Snapshot(log.Entity))
	if err == nil && len(body) > maxPage {
		err = fault.Newf(fault.MessageTooBig, "The snapshot has %d bytes, which is more than an answer may have. Read the events.", len(body))
	}
	return Text(body), err
}

// baseOf returns the event with which a snapshot begins. A conversation may be long: it is enough to know what still matters.
func (a *API) baseOf(ctx context.Context, log subject.Log, first, at uint64) (uint64, error) {
	if !snapshot.Cuts(log.Kind) {
		if at-first >= maxFolded {
			return 0, tooFar(first)
		}
		return first, nil
	}
	var cut snapshot.Cut
	for begin, end := first+max(snapshotReach, at-first+1)-snapshotReach, at; ; {
		events, err := a.between(ctx, log, begin, end)
		if err != nil {
			return 0, err
		}
		for _, e := range slices.Backward(events) {
			cut.Take(e)
		}
		switch {
		case begin == first:
			return first, nil
		case cut.Found > 0:
			return cut.Found, nil
		case at-begin >= maxFolded:
			return 0, tooFar(first)
		}
		end, begin = begin-1, first+max(snapshotStretch, begin-first)-snapshotStretch
	}
}

func tooFar(first uint64) error {
	return fault.Newf(fault.InvalidField, "A snapshot depends on at most %d events before it in this log, which begins with seq %d.", maxFolded, first).At("at")
}

// between reads the events from one to another.
func (a *API) between(ctx context.Context, log subject.Log, from, to uint64) ([]event.Event, error) {
	var out []event.Event
	err := a.each(ctx, log, from, to, func(e event.Event) { out = append(out, e) })
	return out, err
}

// each visits the events from one to another.
func (a *API) each(ctx context.Context, log subject.Log, from, to uint64, visit func(event.Event)) error {
	err := a.cfg.Log.Read(ctx, log, eventlog.Cursor{Seq: from - 1}, func(e *eventlog.Entry) error {
		if e.Sequence > to {
			return errPageFull
		}
		visit(e.Event)
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return readFault(err)
	}
	return nil
}

// folded returns the fold of the events from one to another. It goes on from the nearest one that is kept.
func (a *API) folded(ctx context.Context, log subject.Log, base, at uint64) (*snapshot.Fold, error) {
	f, from := a.keyframes.before(log, base, at), base
	if f == nil {
		f = snapshot.New(log.Kind)
	} else {
		from = f.Seq() + 1
	}
	if from > at {
		return f, nil
	}
	err := a.each(ctx, log, from, at, func(e event.Event) {
		if f.Take(e); e.Sequence%keyframeEvery == 0 {
			a.keyframes.keep(log, f)
		}
	})
	return f, err
}
