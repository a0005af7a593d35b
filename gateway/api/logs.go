package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxLogScan bounds the events that one page of a log looks at. A filter that few of them pass makes a page short or
// empty, and its next continues.
const maxLogScan = 5000

// shownKinds are the kinds of the logs that principals read.
var shownKinds = []id.Kind{id.KindSession, id.KindMember, id.KindTeam, id.KindTask, id.KindCall}

// me answers with the principal of the request.
func (*API) me(_ *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	out := wire.Me{Subject: p.Subject, Tenant: p.Tenant.String(), Roles: []string{}, May: []string{}, Expires: p.Expires}
	for _, role := range p.Roles {
		out.Roles = append(out.Roles, string(role))
	}
	for _, right := range []struct {
		name string
		has  bool
	}{{"watch", p.MayWatch()}, {"act", p.MayAct()}, {"operate", p.Has(auth.RoleOperator)}} {
		if right.has {
			out.May = append(out.May, right.name)
		}
	}
	return out, nil
}

// namedLog returns the log that the request names and its ends, if the principal sees it. Another one does not exist.
func (a *API) namedLog(r *http.Request, who *edge.Client) (log subject.Log, first, last *eventlog.Entry, err error) {
	p := who.Principal()
	unknown := fault.New(fault.RunNotFound)
	kind := id.Kind(r.PathValue("kind"))
	if !slices.Contains(shownKinds, kind) {
		return log, nil, nil, unknown
	}
	log = subject.Log{Tenant: p.Tenant, Kind: kind, Entity: id.EntityFromExternal(r.PathValue("id"))}
	if err = who.Sees(r.Context(), log, unknown); err == nil {
		first, last, err = a.cfg.Edge.Log.Ends(r.Context(), log)
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

// showHead answers with the extent of a log.
func (a *API) showHead(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := a.namedLog(r, who)
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

// listLogEvents answers with a page of a log: behind a position, or the newest events before one.
func (a *API) listLogEvents(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := a.namedLog(r, who)
	if err != nil {
		return nil, err
	}
	limit, err := request.Number(r, "limit", defaultEvents, maxEvents)
	if err != nil {
		return nil, err
	}
	f, err := logFilterOf(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	pageOf := logPage{a: a, log: log, filter: f, limit: limit, first: first.Sequence, last: last.Sequence}
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

// position reads a seq of at most limit.
func position(s string, limit uint64, field string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > limit {
		return 0, fault.New(fault.CursorInvalid).At(field)
	}
	return n, nil
}

// logPage makes a page of a log with the ends first and last.
type logPage struct {
	a           *API
	log         subject.Log
	filter      logFilter
	limit       int
	first, last uint64
}

// newer returns the events behind a position.
func (p logPage) newer(ctx context.Context, after uint64) (wire.LogPage, error) {
	out, room, scanned := wire.LogPage{Events: []json.RawMessage{}}, answer.MaxPage, 0
	if after+1 < p.first {
		out.Expired, after = p.first-1, p.first-1
	}
	err := p.a.cfg.Edge.Log.Read(ctx, p.log, eventlog.Cursor{Seq: after}, func(e *eventlog.Entry) error {
		if scanned == maxLogScan || len(out.Events) == p.limit || room < len(e.Raw) && len(out.Events) > 0 {
			out.More = true
			return errPageFull
		}
		scanned, after = scanned+1, e.Sequence
		if p.filter.passes(e.Event) {
			raw := shown(e)
			out.Events, room = append(out.Events, raw), room-len(raw)-1
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
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
		err := p.a.cfg.Edge.Log.Read(ctx, p.log, eventlog.Cursor{Seq: from - 1}, func(e *eventlog.Entry) error {
			if e.Sequence >= before {
				return errPageFull
			}
			scanned++
			if p.filter.passes(e.Event) {
				part, seqs = append(part, shown(e)), append(seqs, e.Sequence)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errPageFull) {
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
