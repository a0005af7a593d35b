package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// snapshots are what logs have said up to one of their events.
type snapshots struct {
	*parts
	logs  logs
	folds *stream.Folds[snapshotKey, *snapshot.Fold]
}

// snapshotKey names the folds of a log that begin with one of its events.
type snapshotKey struct {
	log  subject.Log
	base uint64
}

func newSnapshots(p *parts, l logs) snapshots {
	return snapshots{p, l, stream.NewFolds(snapshotBytes, snapshotMarks, func(k snapshotKey) *snapshot.Fold { return snapshot.New(k.log.Kind) })}
}

const (
	// snapshotVersion changes when the same events have another snapshot.
	snapshotVersion = 1
	// snapshotReach is how far before its end a snapshot of a conversation begins at least: the events that a page shows first.
	snapshotReach = 500
	// snapshotStretch is the number of events that are read at once to find where a snapshot begins.
	snapshotStretch = 1000
	// snapshotMost is the number of events that are kept from finding the beginning to the fold.
	snapshotMost = 2000
	// snapshotBytes and snapshotMarks bound the folds that are kept, of all logs and of one.
	snapshotBytes, snapshotMarks = 32 << 20, 100
)

func (s snapshots) routes() []Route {
	return []Route{{
		Method: "GET", Path: "/logs/{kind}/{id}/snapshot", ID: "showLogSnapshot", Tag: "events",
		Summary: "Show what the log of a session, member, team or task has said up to one of its events.",
		Query:   []openapi.Parameter{{Name: "at", About: "Seq of that event; the newest one by default.", Type: "integer"}},
		Header:  ifNoneMatch,
		Answers: []openapi.Answer{
			{Status: http.StatusOK, About: "The snapshot, as canonical JSON (RFC 8785). Its base tells which events it is made of.", Type: wire.Snapshot{}},
			notModified,
		},
		Faults:  logFaults(fault.InvalidField, fault.CursorInvalid, fault.HeadExpired, fault.MessageTooBig),
		Handler: s.server.ServePage(s.show),
	}}
}

// show answers with what a log has said up to one of its events.
func (s snapshots) show(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := s.logs.named(r, who)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(snapshot.Kinds(), log.Kind) {
		return nil, fault.Newf(fault.InvalidField, "Logs of kind %s have no snapshots.", log.Kind).At("kind")
	}
	q := queryOf(r)
	at := q.seq("at", last.Sequence, last.Sequence)
	if q.err != nil {
		return nil, q.err
	}
	if at < first.Sequence {
		return nil, fault.Newf(fault.HeadExpired, "History before seq %d has expired.", first.Sequence).At("at")
	}
	tag := fmt.Sprintf(`"%d.%d.%d"`, snapshotVersion, first.Sequence, at)
	return respond.Tagged{Tag: tag, Make: func() (any, error) { return s.of(r.Context(), log, first.Sequence, at) }}, nil
}

func (s snapshots) of(ctx context.Context, log subject.Log, first, at uint64) (any, error) {
	base, read, err := s.baseOf(ctx, log, first, at)
	if err != nil {
		return nil, err
	}
	f, err := s.folded(ctx, log, base, at, read)
	if err != nil {
		return nil, err
	}
	body, err := snapshot.Canonical(f.Snapshot(log.Entity))
	if err == nil && len(body) > answer.MaxPage {
		err = fault.Newf(fault.MessageTooBig, "The snapshot has %d bytes, which is more than a response may have. Read the events instead.", len(body))
	}
	return respond.Text(body), err
}

// baseOf returns the event with which a snapshot begins, and the events up to its end that were read for it, if they are few. A
// conversation may be long: it is enough to know what still matters.
func (s snapshots) baseOf(ctx context.Context, log subject.Log, first, at uint64) (base uint64, read []event.Event, err error) {
	if !snapshot.Cuts(log.Kind) {
		if at-first >= maxFolded {
			return 0, nil, tooFar(first)
		}
		return first, nil, nil
	}
	var cut snapshot.Cut
	for begin, end := first+max(snapshotReach, at-first+1)-snapshotReach, at; ; {
		part, err := s.between(ctx, log, begin, end)
		if err != nil {
			return 0, nil, err
		}
		for _, e := range slices.Backward(part) {
			cut.Take(e)
		}
		if at-begin < snapshotMost {
			read = append(part, read...)
		}
		switch {
		case begin == first:
			return first, read, nil
		case cut.Found > 0:
			return cut.Found, read, nil
		case at-begin >= maxFolded:
			return 0, nil, tooFar(first)
		}
		end, begin = begin-1, first+max(snapshotStretch, begin-first)-snapshotStretch
	}
}

func tooFar(first uint64) error {
	return fault.Newf(fault.InvalidField, "A snapshot covers at most %d events, and this log begins with seq %d. Use a smaller at.", maxFolded, first).At("at")
}

// between reads the events from one to another.
func (s snapshots) between(ctx context.Context, log subject.Log, from, to uint64) ([]event.Event, error) {
	var out []event.Event
	err := s.each(ctx, log, from, to, func(e event.Event) { out = append(out, e) })
	return out, err
}

// each visits the events from one to another.
func (s snapshots) each(ctx context.Context, log subject.Log, from, to uint64, visit func(event.Event)) error {
	err := stream.Read(ctx, s.edge.Log, log, eventlog.Cursor{Seq: from - 1}, to, func(e *eventlog.Entry) error {
		visit(e.Event)
		return nil
	})
	return readFault(err)
}

// folded returns the fold of the events from one to another. The last events may have been read.
func (s snapshots) folded(ctx context.Context, log subject.Log, base, at uint64, read []event.Event) (*snapshot.Fold, error) {
	f, _, err := s.folds.Before(snapshotKey{log, base}, at, func(after eventlog.Cursor, take func(event.Event)) error {
		from, to := max(base, after.Seq+1), at
		if len(read) > 0 {
			to = read[0].Sequence - 1
		}
		if from <= to {
			if err := s.each(ctx, log, from, to, take); err != nil {
				return err
			}
		}
		for _, e := range read {
			if e.Sequence >= from {
				take(e)
			}
		}
		return nil
	})
	return f, err
}
