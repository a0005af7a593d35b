package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxFolded bounds the events that a page folds before its first, for protocols whose frames depend on them.
const maxFolded = 100_000

// frameLimit is the number of events of a page of frames.
var frameLimit = limit("Events", 100, 1000)

// frames are the events of a log as the clients of a protocol read them.
type frames struct {
	*parts
	logs      logs
	translate func(subject.Log, url.Values) (Translation, error) // nil: the gateway speaks no protocol
}

func (f frames) routes() []Route {
	r := Route{
		Method: "GET", Path: "/logs/{kind}/{id}/frames", ID: "listLogFrames", Tag: "events", Summary: "Read a page of a log as the clients of a protocol do.",
		Query: []openapi.Parameter{
			{Name: "as", About: "The protocol: agent, agent-team, agui, agui-0, agui-0+subagents, asp-client, myagent or orbit. Other parameters choose its variant, as they do when a client connects.", Type: "string"},
			{Name: "after", About: "Seq: the page begins with the next event. AG-UI and logs of over 100,000 events: not beyond that many.", Type: "integer"},
			frameLimit.Parameter,
		},
		Answers: json200("The frames of each event, without those that a connection adds.", wire.FramePage{}),
		Faults:  logFaults(fault.InvalidField, fault.CursorInvalid, fault.HeadExpired),
	}
	if f.translate != nil {
		r.Handler = f.server.ServePage(f.list)
	}
	return []Route{r}
}

// list answers with a page of a log as the clients of a protocol read it.
func (f frames) list(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := f.logs.named(r, who)
	if err != nil {
		return nil, err
	}
	q := queryOf(r)
	to, err := f.translate(log, q.Values)
	if err != nil {
		return nil, err
	}
	limit, after := q.count(frameLimit), q.seq("after", 0, last.Sequence)
	if q.err != nil {
		return nil, q.err
	}
	page := framePage{parts: f.parts, log: log, to: to, limit: limit, room: answer.MaxPage, out: wire.FramePage{Protocol: q.Get("as"), Events: []wire.EventFrames{}}}
	if after+1 < first.Sequence {
		page.out.Expired, after = first.Sequence-1, first.Sequence-1
	}
	return page.read(r.Context(), first.Sequence, after)
}

// framePage makes a page of frames.
type framePage struct {
	parts *parts
	log   subject.Log
	to    Translation
	limit int
	room  int // bytes that the page may still take
	out   wire.FramePage
}

// read fills the page with the frames of the events after a position.
func (p *framePage) read(ctx context.Context, first, after uint64) (wire.FramePage, error) {
	from := after
	if p.to.Fold != nil {
		if from = first - 1; after-from > maxFolded {
			return p.out, fault.Newf(fault.InvalidField, "Frames of this protocol depend on all earlier events: after must be at most %d in this log.", from+maxFolded).At("after")
		}
	}
	p.out.Next = strconv.FormatUint(after, 10)
	err := stream.Read(ctx, p.parts.edge.Log, p.log, eventlog.Cursor{Seq: from}, stream.ToEnd, func(entry *eventlog.Entry) error {
		e, err := p.parts.payloads.Event(ctx, p.log.Tenant, entry.Event)
		if err != nil {
			return err
		}
		if e.Sequence <= after {
			p.to.Fold(e)
			return nil
		}
		return p.add(e)
	})
	return p.out, readFault(err)
}

// add adds the frames of the next event, or returns stream.ErrEnough.
func (p *framePage) add(e event.Event) error {
	one, size := wire.EventFrames{Seq: e.Sequence, Type: string(e.Type), Frames: []json.RawMessage{}}, 0
	if len(p.out.Events) < p.limit {
		for _, f := range p.to.Next(e) {
			one.Frames, size = append(one.Frames, f), size+len(f)+1
		}
	}
	if len(p.out.Events) == p.limit || size > p.room && len(p.out.Events) > 0 {
		p.out.More = true
		return stream.ErrEnough
	}
	p.room -= size
	p.out.Events, p.out.Next = append(p.out.Events, one), strconv.FormatUint(e.Sequence, 10)
	return nil
}
