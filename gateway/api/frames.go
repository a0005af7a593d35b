package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultFrames and maxFrames are numbers of events on a page of frames.
	defaultFrames, maxFrames = 100, 1000
	// maxFolded bounds the events that a page folds before its first, for protocols whose frames depend on them.
	maxFolded = 100_000
)

// listLogFrames answers with a page of a log as the clients of a protocol read it.
func (a *API) listLogFrames(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := a.namedLog(r, who)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	to, err := a.cfg.Translate(log, q)
	if err != nil {
		return nil, err
	}
	limit, err := request.Number(r, "limit", defaultFrames, maxFrames)
	if err != nil {
		return nil, err
	}
	after := uint64(0)
	if q.Has("after") {
		if after, err = position(q.Get("after"), last.Sequence, "after"); err != nil {
			return nil, err
		}
	}
	page := framePage{a: a, log: log, to: to, limit: limit, room: answer.MaxPage, out: wire.FramePage{Protocol: q.Get("as"), Events: []wire.EventFrames{}}}
	if after+1 < first.Sequence {
		page.out.Expired, after = first.Sequence-1, first.Sequence-1
	}
	return page.read(r.Context(), first.Sequence, after)
}

// framePage makes a page of frames.
type framePage struct {
	a     *API
	log   subject.Log
	to    Translation
	limit int
	room  int // bytes that the page may still take
	out   wire.FramePage
}

// read fills the page with the frames of the events behind a position.
func (p *framePage) read(ctx context.Context, first, after uint64) (wire.FramePage, error) {
	from := after
	if p.to.Fold != nil {
		if from = first - 1; after-from > maxFolded {
			return p.out, fault.Newf(fault.InvalidField, "Frames of this protocol depend on all earlier events: after must be at most %d in this log.", from+maxFolded).At("after")
		}
	}
	p.out.Next = strconv.FormatUint(after, 10)
	err := p.a.cfg.Edge.Log.Read(ctx, p.log, eventlog.Cursor{Seq: from}, func(entry *eventlog.Entry) error {
		e, err := p.a.payloads.Event(ctx, p.log.Tenant, entry.Event)
		if err != nil {
			return err
		}
		if e.Sequence <= after {
			p.to.Fold(e)
			return nil
		}
		return p.add(e)
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return p.out, readFault(err)
	}
	return p.out, nil
}

// add adds the frames of the next event, or returns errPageFull.
func (p *framePage) add(e event.Event) error {
	one, size := wire.EventFrames{Seq: e.Sequence, Type: string(e.Type), Frames: []json.RawMessage{}}, 0
	if len(p.out.Events) < p.limit {
		for _, f := range p.to.Next(e) {
			one.Frames, size = append(one.Frames, f), size+len(f)+1
		}
	}
	if len(p.out.Events) == p.limit || size > p.room && len(p.out.Events) > 0 {
		p.out.More = true
		return errPageFull
	}
	p.room -= size
	p.out.Events, p.out.Next = append(p.out.Events, one), strconv.FormatUint(e.Sequence, 10)
	return nil
}
