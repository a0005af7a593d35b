package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxScan bounds the entries that one answer looks at, 0.5 KB each, and maxRead those that are read together. A filter
	// that few of them pass makes a page short or empty, and its next continues.
	maxScan = 20_000
	maxRead = 1000
	// maxCounted bounds the sessions that are counted: pages ask for the counts whenever something has changed.
	maxCounted = 2000
)

// The parameters of the list of sessions.
var (
	sessionLimit  = limit("Items", defaultItems, maxItems)
	sessionStatus = chosen("status", "open or closed.", wire.SessionOpen, wire.SessionClosed)
	sessionState  = chosen("state", "running, waiting (for people), or how the last run ended: completed, partly, failed, cancelled, unknown_outcome. idle: no run is under way.", wire.SessionStates()...)
	sessionSince  = moment{openapi.Parameter{Name: "since", About: "Changed at this time or later (RFC 3339).", Type: "string"}}
	sessionUntil  = moment{openapi.Parameter{Name: "until", About: "Changed before this time (RFC 3339).", Type: "string"}}
	sessionText   = short("q", "Part of the beginning of the first message, in any case.", 200)
	sessionQuery  = []openapi.Parameter{
		before, sessionLimit.Parameter, sessionStatus.Parameter, sessionState.Parameter,
		{Name: "principal", About: "The principal that opened the session.", Type: "string"},
		{Name: "dialect", About: "The dialect of the connection that opened the session.", Type: "string"},
		sessionSince.Parameter, sessionUntil.Parameter, sessionText.Parameter,
	}
)

// countQuery are the parameters of the counts of sessions: the filters of a list, but for the state that they count.
var countQuery = slices.DeleteFunc(slices.Clone(sessionQuery), func(p openapi.Parameter) bool {
	return p.Name == before.Name || p.Name == sessionLimit.Name || p.Name == sessionState.Name
})

// lists are the routes that answer from the index. with adds the faults of a session that the principal does not see.
func (s sessions) lists(with func(...fault.Code) []fault.Code) []Route {
	return []Route{
		{
			Method: "GET", Path: "/sessions", ID: "listSessions", Tag: "sessions", Summary: "List sessions, the newest change first.",
			Query: sessionQuery, Answers: json200("A page of the sessions of the tenant.", wire.SessionList{}), Faults: []fault.Code{fault.InvalidField},
			Handler: s.server.Serve(s.list),
		},
		{
			Method: "GET", Path: "/session-counts", ID: "countSessions", Tag: "sessions", Summary: "Count the sessions in each state.",
			Query: countQuery, Answers: json200("The counts.", wire.SessionCounts{}), Faults: []fault.Code{fault.InvalidField},
			Handler: s.server.Serve(s.count),
		},
		{
			Method: "GET", Path: "/sessions/{id}/summary", ID: "summarizeSession", Tag: "sessions", Summary: "Show a session as lists do, as of at most a second ago.",
			Answers: json200("The session.", wire.SessionSummary{}), Faults: with(), Handler: s.server.Serve(s.summary),
		},
	}
}

// sessionFilter is what a list of sessions asks for. Empty members allow everything.
type sessionFilter struct {
	status, state, principal, dialect, question string
	since, until                                time.Time
}

func sessionFilterOf(q *query) sessionFilter {
	return sessionFilter{
		status: q.choice(sessionStatus), state: q.choice(sessionState), principal: q.Get("principal"), dialect: q.Get("dialect"),
		question: strings.ToLower(q.text(sessionText)), since: q.moment(sessionSince), until: q.moment(sessionUntil),
	}
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

// list answers with a page of the sessions that the principal sees and that pass the filters, from the index.
func (s sessions) list(r *http.Request, who *edge.Client) (any, error) {
	q := queryOf(r)
	limit, f, before := q.count(sessionLimit), sessionFilterOf(q), q.place()
	if q.err != nil {
		return nil, q.err
	}
	all, filtered := who.SeesAll(), f != (sessionFilter{})
	out := wire.SessionList{Sessions: []wire.SessionSummary{}}
	pages := s.seen(r, who, func(total int) {
		if all {
			out.Total = &total
		}
	}, func(one *index.Stored) bool {
		if filtered {
			out.Searched++
		}
		passes := f.passes(one)
		if passes {
			out.Sessions = append(out.Sessions, summaryOf(one))
		}
		return passes
	})
	if pages.Limit = limit; !all || filtered {
		pages.Least = minScan
	}
	place, err := pages.Before(before)
	out.Next, out.More = next(place), place != 0
	return out, err
}

// seen is a search among the sessions that the principal sees. total gets the number of all sessions of the tenant.
func (s sessions) seen(r *http.Request, who *edge.Client, total func(int), take func(*index.Stored) bool) newest.Search[index.Stored] {
	tenant, all := who.Principal().Tenant, who.SeesAll()
	return newest.Search[index.Stored]{
		Least: 1, Most: maxScan, AtOnce: maxRead,
		Place: func(one *index.Stored) uint64 { return one.Sequence },
		Read: func(before uint64, entries int) (newest.Part[index.Stored], error) {
			part, err := s.index.Page(r.Context(), tenant, id.KindSession, before, entries)
			total(part.Total)
			return newest.Part[index.Stored]{Entries: part.Summaries, Looked: len(part.Summaries), More: part.More}, err
		},
		Take: func(one *index.Stored) (newest.Verdict, error) {
			return verdict((all || one.Known && who.SeesOwner(one.Owner)) && take(one))
		},
	}
}

// count answers with the number of sessions in each state, of those that the principal sees and that pass the filters.
func (s sessions) count(r *http.Request, who *edge.Client) (any, error) {
	q := queryOf(r)
	f := sessionFilterOf(q)
	if q.err != nil {
		return nil, q.err
	}
	out, found := wire.SessionCounts{States: []wire.StateCount{}}, map[string]int{}
	pages := s.seen(r, who, func(int) {}, func(one *index.Stored) bool {
		out.Searched++
		if f.passes(one) {
			found[one.State()]++
		}
		return false // no page is filled
	})
	pages.Limit, pages.Least, pages.Most = maxCounted, maxRead, maxCounted
	place, err := pages.Before(0)
	out.More = place != 0
	for _, state := range wire.SessionStates() {
		if n := found[state]; n > 0 {
			out.States = append(out.States, wire.StateCount{State: state, Sessions: n})
		}
	}
	return out, err
}

// summary answers with what lists say of a session.
func (s sessions) summary(r *http.Request, who *edge.Client) (any, error) {
	log, err := s.log(r, who)
	if err != nil {
		return nil, err
	}
	one, found, err := s.index.Summary(r.Context(), log)
	if err == nil && !found {
		err = fault.New(fault.SessionNotFound)
	}
	return summaryOf(&one), err
}

func summaryOf(s *index.Stored) wire.SessionSummary {
	return wire.SessionSummary{
		SessionID: s.Log.Entity.String(), Status: s.Status(), LastSeq: s.LastSeq, LastEvent: s.LastEvent, UpdatedAt: s.UpdatedAt,
		Question: s.Question, State: s.State(), Dialect: s.Dialect, Principal: s.Owner, CreatedAt: s.CreatedAt, Runs: s.Runs,
		Model: s.Model, Agent: s.Agent, DurationMS: s.Spent.MS, Tokens: s.Spent.Tokens, Input: s.Spent.Input,
		Cached: s.Spent.Cached, CostUSD: s.Spent.Cost(),
	}
}
