package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// shown returns the stored form of an event as people may read it.
func shown(e *eventlog.Entry) json.RawMessage { return eventdata.RawForPeople(e.Type, e.Raw) }

// logPage makes a page of a log with the ends first and last.
type logPage struct {
	logs        logs
	log         subject.Log
	filter      logFilter
	limit       int
	first, last uint64
}

// newer returns the events after a position.
func (p logPage) newer(ctx context.Context, after uint64) (wire.LogPage, error) {
	out, room, scanned := wire.LogPage{Events: []json.RawMessage{}}, answer.MaxPage, 0
	if after+1 < p.first {
		out.Expired, after = p.first-1, p.first-1
	}
	err := stream.Read(ctx, p.logs.edge.Log, p.log, eventlog.Cursor{Seq: after}, stream.ToEnd, func(e *eventlog.Entry) error {
		if scanned == maxLogScan || len(out.Events) == p.limit || room < len(e.Raw) && len(out.Events) > 0 {
			out.More = true
			return stream.ErrEnough
		}
		scanned, after = scanned+1, e.Sequence
		if p.filter.passes(e.Event) {
			raw := shown(e)
			out.Events, room = append(out.Events, raw), room-len(raw)-1
		}
		return nil
	})
	if err != nil {
		return out, readFault(err)
	}
	out.Next = strconv.FormatUint(after, 10)
	return out, nil
}

// older returns the newest events before a position. It reads the log backwards in stretches.
func (p logPage) older(ctx context.Context, before uint64) (wire.LogPage, error) {
	out, room := wire.LogPage{Events: []json.RawMessage{}}, answer.MaxPage
	for scanned := 0; before > p.first && len(out.Events) < p.limit && scanned < maxLogScan; {
		width := uint64(min(max(p.limit-len(out.Events), minScan), maxLogScan-scanned))
		from := max(p.first, before-min(before, width))
		var part []json.RawMessage
		var seqs []uint64
		err := stream.Read(ctx, p.logs.edge.Log, p.log, eventlog.Cursor{Seq: from - 1}, before-1, func(e *eventlog.Entry) error {
			scanned++
			if p.filter.passes(e.Event) {
				part, seqs = append(part, shown(e)), append(seqs, e.Sequence)
			}
			return nil
		})
		if err != nil {
			return out, readFault(err)
		}
		take := len(part)
		for take > 0 && len(out.Events)+len(part)-take < p.limit {
			if room -= len(part[take-1]) + 1; room < 0 && len(out.Events)+len(part)-take > 0 {
				break
			}
			take--
		}
		out.Events = append(slices.Clone(part[take:]), out.Events...)
		if before = from; take > 0 {
			before = seqs[take-1] + 1
			break
		}
	}
	if out.More = before > p.first; out.More {
		out.Next = strconv.FormatUint(before, 10)
	} else if p.first > 1 {
		out.Expired = p.first - 1
	}
	return out, nil
}

// readFault returns what a client may learn of a failed read of a log.
func readFault(err error) error {
	if cut, ok := errors.AsType[*eventlog.TruncatedError](err); ok { // it has expired meanwhile
		return fault.Newf(fault.HeadExpired, "History before seq %d has expired. Try again.", cut.First)
	}
	return err
}
