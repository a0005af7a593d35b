package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxScan bounds the entries that one answer looks at, 0.5 KB each, and maxRead those that are read together. A filter
	// that few of them pass makes a page short or empty, and its next continues.
	maxScan = 20_000
	maxRead = 1000
	// minScan is the least number of summaries that one read returns where not all of them are shown.
	minScan = 100
	// maxQuestion bounds the text that a filter searches for.
	maxQuestion = 200
)

// sessionFilter is what a list of sessions asks for. Empty members allow everything.
type sessionFilter struct {
	status, state, principal, dialect, question string
	since, until                                time.Time
}

func sessionFilterOf(q url.Values) (sessionFilter, error) {
	f := sessionFilter{
		status: q.Get("status"), state: q.Get("state"), principal: q.Get("principal"), dialect: q.Get("dialect"), question: strings.ToLower(q.Get("q")),
	}
	for name, known := range map[string][]string{
		"status": {wire.SessionOpen, wire.SessionClosed}, "state": wire.SessionStates(),
	} {
		if v := q.Get(name); v != "" && !slices.Contains(known, v) {
			return f, fault.Newf(fault.InvalidField, "%s must be one of %s.", name, strings.Join(known, ", ")).At(name)
		}
	}
	if len(f.question) > maxQuestion {
		return f, fault.Newf(fault.InvalidField, "q must be at most %d bytes.", maxQuestion).At("q")
	}
	for name, to := range map[string]*time.Time{"since": &f.since, "until": &f.until} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return f, fault.Newf(fault.InvalidField, "%s must be a time in RFC 3339.", name).At(name).Wrap(err)
		}
		*to = at
	}
	return f, nil
}

func (f sessionFilter) passes(s *index.Stored) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	return is(f.status, s.Status()) && f.in(s.State()) && is(f.principal, s.Owner) && is(f.dialect, s.Dialect) &&
		!s.UpdatedAt.Before(f.since) && (f.until.IsZero() || s.UpdatedAt.Before(f.until)) &&
		(f.question == "" || strings.Contains(strings.ToLower(s.Question), f.question))
}

// in reports whether the state is the one that the filter asks for.
func (f sessionFilter) in(state string) bool {
	if f.state == wire.SessionIdle {
		return state != wire.SessionRunning && state != wire.SessionWaiting
	}
	return f.state == "" || f.state == state
}

// listSessions answers with a page of the sessions that the principal sees and that pass the filters, from the index.
func (a *API) listSessions(r *http.Request, who *edge.Client) (any, error) {
	q := r.URL.Query()
	limit, err := request.Number(r, "limit", request.DefaultItems, request.MaxItems)
	if err != nil {
		return nil, err
	}
	f, err := sessionFilterOf(q)
	if err != nil {
		return nil, err
	}
	before, err := placeOf(r)
	if err != nil {
		return nil, err
	}
	return a.sessions(r.Context(), who, f, before, limit)
}

// sessions collects a page of sessions before the place in the index.
func (a *API) sessions(ctx context.Context, who *edge.Client, f sessionFilter, before uint64, limit int) (wire.SessionList, error) {
	p := who.Principal()
	out := wire.SessionList{Sessions: []wire.SessionSummary{}}
	all := who.SeesAll()
	least := 1
	if !all || f != (sessionFilter{}) {
		least = minScan
	}
	for scanned := 0; ; least = min(2*least, maxRead) {
		part, err := a.index.Page(ctx, p.Tenant, id.KindSession, before, min(max(limit-len(out.Sessions), least), maxScan-scanned))
		if err != nil {
			return out, err
		}
		if all {
			out.Total = &part.Total
		}
		for i := range part.Summaries {
			if len(out.Sessions) == limit {
				part.More = true
				break
			}
			one := &part.Summaries[i]
			if before = one.Sequence; all || one.Known && who.SeesOwner(one.Owner) {
				f.add(&out, one)
			}
		}
		scanned += len(part.Summaries)
		switch {
		case !part.More:
			return out, nil
		case len(out.Sessions) == limit || scanned >= maxScan:
			out.Next, out.More = strconv.FormatUint(before, 10), true
			return out, nil
		}
	}
}

// add appends a session that passes, and counts it as searched if anything is looked for.
func (f sessionFilter) add(to *wire.SessionList, one *index.Stored) {
	if (f != sessionFilter{}) {
		to.Searched++
	}
	if f.passes(one) {
		to.Sessions = append(to.Sessions, summaryOf(one))
	}
}

func summaryOf(s *index.Stored) wire.SessionSummary {
	return wire.SessionSummary{
		SessionID: s.Log.Entity.String(), Status: s.Status(), LastSeq: s.LastSeq, LastEvent: s.LastEvent, UpdatedAt: s.UpdatedAt,
		Question: s.Question, State: s.State(), Dialect: s.Dialect, Principal: s.Owner, CreatedAt: s.CreatedAt, Runs: s.Runs,
	}
}

// placeOf returns the place in the index that the parameter before names, 0 for the end.
func placeOf(r *http.Request) (uint64, error) {
	return index.ParsePlace(r.URL.Query().Get("before"))
}
