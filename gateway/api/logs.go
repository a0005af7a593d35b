package api

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// logs are what is stored of sessions, members, teams, tasks and calls.
type logs struct{ *parts }

// maxLogScan bounds the events that one page of a log looks at. A filter that few of them pass makes a page short or
// empty, and its next continues.
const maxLogScan = 5000

// shownKinds are the kinds of the logs that principals read.
var shownKinds = []id.Kind{id.KindSession, id.KindMember, id.KindTeam, id.KindTask, id.KindCall}

// eventLimit is the number of events of a page, which answer.MaxPage bounds, too.
var eventLimit = limit("Events", 500, 1000)

// The filters of events.
var logTypes, logRun = openapi.Parameter{
	Name: "types", About: "Types of events, separated by commas; all by default. Those of members count in the log of a team.", Type: "string", Many: true,
}, openapi.Parameter{Name: "run", About: "Id of the run that the events belong to.", Type: "string"}

// logFaults are those of all requests about a log.
func logFaults(more ...fault.Code) []fault.Code {
	return append(more, fault.RunNotFound, fault.SessionDeleted)
}

func (l logs) routes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/logs/{kind}/{id}/head", ID: "showLogHead", Tag: "events", Summary: "Show the extent of the log of a session, member, team, task or call.",
			Answers: json200("The extent.", wire.LogHead{}), Faults: logFaults(), Handler: l.server.Serve(l.head),
		},
		{
			Method: "GET", Path: "/logs/{kind}/{id}/events", ID: "listLogEvents", Tag: "events", Summary: "Read a page of the log of a session, member, team, task or call.",
			Query: []openapi.Parameter{
				{Name: "after", About: "Seq: the page begins with the next event. Without after and before it begins with the log.", Type: "integer"},
				{Name: "before", About: "Seq: the page has the newest events before it.", Type: "integer"},
				eventLimit.Parameter, logTypes, logRun,
			},
			Answers: json200("The events, oldest first. With types or run a page may be short or empty and still have a next.", wire.LogPage{}),
			Faults:  logFaults(fault.InvalidField, fault.CursorInvalid, fault.HeadExpired), Handler: l.server.ServePage(l.events),
		},
		{
			Method: "GET", Path: "/logs/{kind}/{id}/export", ID: "exportLog", Tag: "events", Summary: "Save the log of a session, member, team, task or call as a file.",
			Query: []openapi.Parameter{
				{Name: "until", About: "Seq of the last event; without it that of the log.", Type: "integer"},
				logTypes, logRun,
			},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The events, oldest first, one on each line. A connection that is cut leaves a part of them.", Media: respond.MediaLines}},
			Faults:  logFaults(fault.InvalidField, fault.CursorInvalid), Handler: l.server.ServeExport(l.export),
		},
	}
}

// named returns the log that the request names and its ends, if the principal sees it. Another one does not exist.
func (l logs) named(r *http.Request, who *edge.Client) (log subject.Log, first, last *eventlog.Entry, err error) {
	p := who.Principal()
	unknown := fault.New(fault.RunNotFound)
	kind := id.Kind(r.PathValue("kind"))
	if !slices.Contains(shownKinds, kind) {
		return log, nil, nil, unknown
	}
	log = subject.Log{Tenant: p.Tenant, Kind: kind, Entity: id.EntityFromExternal(r.PathValue("id"))}
	if err = who.Sees(r.Context(), log, unknown); err == nil {
		first, last, err = l.edge.Log.Ends(r.Context(), log)
	}
	switch {
	case err != nil:
		return log, nil, nil, err
	case last == nil:
		return log, nil, nil, unknown
	case last.Type.Tombstone():
		return log, nil, nil, fault.New(fault.SessionDeleted)
	}
	return log, first, last, nil
}

// head answers with the extent of a log.
func (l logs) head(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := l.named(r, who)
	if err != nil {
		return nil, err
	}
	return wire.LogHead{
		Kind: string(log.Kind), ID: log.Entity.String(), First: first.Sequence, Last: last.Sequence, LastType: string(last.Type), UpdatedAt: last.Time,
	}, nil
}

// logFilter is what a page of a log asks for. Empty members allow everything.
type logFilter struct {
	types []string
	run   string
}

func logFilterOf(r *http.Request) (logFilter, error) {
	f := logFilter{run: r.URL.Query().Get("run")}
	for _, list := range r.URL.Query()["types"] {
		for name := range strings.SplitSeq(list, ",") {
			if !event.Known(event.Type(name)) {
				return f, fault.Newf(fault.InvalidField, "types must be a comma-separated list of event types. %q is not an event type.", name).At("types")
			}
			f.types = append(f.types, name)
		}
	}
	return f, nil
}

// passes reports whether the event, or the one of a member that it repeats, has one of the types and belongs to the run.
func (f logFilter) passes(e event.Event) bool {
	in := event.Unwrap(e)
	if len(f.types) > 0 && !slices.Contains(f.types, string(e.Type)) && !slices.Contains(f.types, string(in.Type)) {
		return false
	}
	if f.run == "" {
		return true
	}
	var of struct {
		RunID string `json:"run_id"`
	}
	return in.Decode(&of) == nil && of.RunID == f.run
}

// events answers with a page of a log: after a position, or the newest events before one.
func (l logs) events(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := l.named(r, who)
	if err != nil {
		return nil, err
	}
	q := queryOf(r)
	limit := q.count(eventLimit)
	if q.err != nil {
		return nil, q.err
	}
	f, err := logFilterOf(r)
	if err != nil {
		return nil, err
	}
	pageOf := logPage{logs: l, log: log, filter: f, limit: limit, first: first.Sequence, last: last.Sequence}
	switch {
	case q.Has("after") && q.Has("before"):
		return nil, fault.Newf(fault.InvalidField, "Use either after or before, not both.").At("before")
	case q.Has("before"):
		before, err := position(q.Get("before"), last.Sequence+1, "before")
		if err != nil {
			return nil, err
		}
		return pageOf.older(r.Context(), before)
	case q.Has("after"):
		after, err := position(q.Get("after"), last.Sequence, "after")
		if err != nil {
			return nil, err
		}
		return pageOf.newer(r.Context(), after)
	}
	return pageOf.newer(r.Context(), 0)
}

// export answers with the events of a log as a file. An event that follows while it is read is not in it.
func (l logs) export(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := l.named(r, who)
	if err != nil {
		return nil, err
	}
	f, err := logFilterOf(r)
	if err != nil {
		return nil, err
	}
	until := last.Sequence
	if s := r.URL.Query().Get("until"); s != "" {
		if until, err = position(s, last.Sequence, "until"); err != nil {
			return nil, err
		}
	}
	return respond.Export{
		Media: respond.MediaLines, Name: string(log.Kind) + "-" + log.Entity.String() + ".jsonl",
		Write: func(ctx context.Context, w io.Writer) error {
			return stream.Read(ctx, l.edge.Log, log, eventlog.Cursor{Seq: first.Sequence - 1}, until, func(e *eventlog.Entry) error {
				switch {
				case e.Type.Tombstone():
					return fault.New(fault.SessionDeleted)
				case !f.passes(e.Event):
					return nil
				}
				return writeLine(w, e)
			})
		},
	}, nil
}

// writeLine writes an event and the end of its line at once.
func writeLine(w io.Writer, e *eventlog.Entry) error {
	raw := shown(e)
	_, err := w.Write(append(append(make([]byte, 0, len(raw)+1), raw...), '\n'))
	return err
}
