package waggle

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/sdk/go/waggle/internal/sse"
)

// Log is the log of a session, a team or a task.
type Log struct {
	client *Client
	kind   id.Kind
	id     string
}

// Log returns the log of a session, a member, a team or a task.
func (c *Client) Log(kind id.Kind, entity string) Log { return Log{client: c, kind: kind, id: entity} }

// ReadOptions say how a log is read.
type ReadOptions struct {
	After uint64 // sequence of the last event that is known; 0 = the whole log
	// Expired is told the first sequence that the server still has, where it has less than was asked for; may be nil.
	Expired func(first uint64)
	// Connection is told of each connection, and of its loss with the reason; may be nil.
	Connection func(up bool, err error)
}

// last are the events that end what a log is of.
var last = map[id.Kind]event.Type{id.KindSession: event.SessionClosed, id.KindTeam: event.TeamClosed, id.KindTask: event.TaskFinished}

// Events reads the log from a position on: history first, then new events, each once and in order, however often the connection breaks.
// It ends with the event that ends the session, the team or the task, or with an error. Not reading holds the server back.
func (l Log) Events(ctx context.Context, o ReadOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		f := follower{log: l, at: position{o.After}, expired: o.Expired}
		for e, err := range l.client.stream(ctx, reading{at: f.request, take: f.take, connection: o.Connection}) {
			if !yield(e, err) || err != nil || e.Type == last[l.kind] {
				return
			}
		}
	}
}

// follower takes the messages of the stream of a log.
type follower struct {
	log     Log
	at      position
	expired func(uint64)
}

func (f *follower) request() request {
	q := request{path: []string{string(f.log.kind) + "s", f.log.id, "stream"}}
	if f.at.at > 0 {
		q.query = url.Values{"after": {strconv.FormatUint(f.at.at, 10)}}
	}
	return q
}

func (f *follower) take(m sse.Message) (event.Event, bool, error) {
	if m.Event == "problem" {
		return event.Event{}, false, f.problem(m.Data)
	}
	if !m.HasID {
		return event.Event{}, false, nil
	}
	e, err := f.log.client.decode(m.Data)
	if err != nil {
		return e, false, err
	}
	ok, err := f.at.reach(e)
	return e, ok, err
}

// problem takes that the log begins later, or returns why the stream ends.
func (f *follower) problem(raw string) error {
	var p streamProblem
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		return f.log.client.unreachable(err)
	}
	if !p.expired() {
		return p.error(raw)
	}
	f.at.skip(p.First - 1)
	if f.expired != nil {
		f.expired(p.First)
	}
	return nil
}

// Head returns where the log begins and ends.
func (l Log) Head(ctx context.Context) (api.LogHead, error) {
	return call[api.LogHead](ctx, l.client, http.MethodGet, nil, "logs", string(l.kind), l.id, "head")
}

// Page returns a page of the log. The query has the parameters of the HTTP API: after, before, limit, types, run.
func (l Log) Page(ctx context.Context, query url.Values) (api.LogPage, error) {
	var page api.LogPage
	raw, err := l.client.Get(ctx, query, "logs", string(l.kind), l.id, "events")
	if err == nil {
		err = json.Unmarshal(raw, &page)
	}
	return page, err
}

// Artifact returns a file that a member of a team made, in its newest version.
func (l Log) Artifact(ctx context.Context, artifact string) ([]byte, error) {
	return l.client.file(ctx, "artifacts", string(l.kind), l.id, artifact)
}

// SessionFile returns a file of a message, by the digest that its event names.
//
// Errors: NOT_FOUND, PAYLOAD_LOST, SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) SessionFile(ctx context.Context, session, digest string) ([]byte, error) {
	return c.file(ctx, "sessions", session, "files", digest)
}

func (c *Client) file(ctx context.Context, path ...string) ([]byte, error) {
	q := request{method: http.MethodGet, path: path}
	return persist(ctx, c, func() ([]byte, error) {
		body, _, err := c.read(ctx, q)
		return body, err
	})
}

// LiveOptions say which announcements are read.
type LiveOptions struct {
	Types []event.Type // only these; empty = all
	// Gap is told how many announcements were lost, because the reader or the gateway was too slow; may be nil.
	Gap func(dropped int)
	// Connection is told of each connection, and of its loss with the reason; may be nil.
	Connection func(up bool, err error)
}

// Live reads the announcements of the tenant: the events of all its logs as they happen. They have no history: what happens without a
// connection does not come later. Read the log itself where that matters.
func (c *Client) Live(ctx context.Context, o LiveOptions) iter.Seq2[event.Event, error] {
	query := url.Values{"t": {"events"}}
	if len(o.Types) > 0 {
		query.Set("types", commas(o.Types))
	}
	return c.stream(ctx, reading{
		at:         func() request { return request{path: []string{"live"}, query: query} },
		take:       func(m sse.Message) (event.Event, bool, error) { return c.announced(m, o.Gap) },
		connection: o.Connection,
	})
}

func (c *Client) announced(m sse.Message, gap func(int)) (event.Event, bool, error) {
	switch m.Event {
	case "problem":
		var p struct {
			streamProblem
			Problem *streamProblem `json:"problem"`
		}
		if err := json.Unmarshal([]byte(m.Data), &p); err != nil {
			return event.Event{}, false, c.unreachable(err)
		}
		if p.Problem != nil {
			p.streamProblem = *p.Problem
		}
		return event.Event{}, false, p.error(m.Data)
	case "gap":
		var g struct {
			Dropped int `json:"dropped"`
		}
		if err := json.Unmarshal([]byte(m.Data), &g); err != nil {
			return event.Event{}, false, c.unreachable(err)
		}
		if gap != nil {
			gap(g.Dropped)
		}
		return event.Event{}, false, nil
	}
	e, err := c.decode(m.Data)
	return e, err == nil, err
}

func commas(types []event.Type) string {
	var all string
	for i, t := range types {
		if i > 0 {
			all += ","
		}
		all += string(t)
	}
	return all
}
