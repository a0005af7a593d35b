package session

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/api"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultPage and maxPage bound the events of one answer: a page of the largest
	// events (256 KiB each) still fits into memory many times over.
	defaultPage = 500
	maxPage     = 1000
)

// API answers the HTTP requests about sessions:
//
//	GET    /api/v1/sessions
//	GET    /api/v1/sessions/{id}
//	DELETE /api/v1/sessions/{id}
//	GET    /api/v1/sessions/{id}/events?after=<seq or cursor>&limit=<n>
//	GET    /api/v1/sessions/{id}/state?history=<true>&max_history=<n>
//	POST   /api/v1/sessions/{id}/cancel
//	POST   /api/v1/sessions/import
//
// Errors are problem documents (RFC 9457). Every request is authenticated, and a
// session of another tenant does not exist. One that was deleted is SESSION_DELETED.
type API struct {
	conn     *bus.Conn
	log      *eventlog.Store
	commands *command.Sender
	server   api.Server
}

// NewAPI returns the API over the given log. States are asked of the session service
// over the connection.
func NewAPI(conn *bus.Conn, log *eventlog.Store, commands *command.Sender, a auth.Authenticator, logger zerolog.Logger) *API {
	return &API{conn: conn, log: log, commands: commands, server: api.Server{Auth: a, Logger: logger}}
}

// Mount registers the API's routes.
func (a *API) Mount(mux *http.ServeMux) {
	serve := a.server.Serve
	mux.HandleFunc("GET /api/v1/sessions", serve(a.list))
	mux.HandleFunc("GET /api/v1/sessions/{id}", serve(a.show))
	mux.HandleFunc("DELETE /api/v1/sessions/{id}", serve(a.delete))
	mux.HandleFunc("GET /api/v1/sessions/{id}/events", serve(a.events))
	mux.HandleFunc("GET /api/v1/sessions/{id}/state", serve(a.state))
	mux.HandleFunc("POST /api/v1/sessions/{id}/cancel", serve(a.cancel))
	mux.HandleFunc("POST /api/v1/sessions/import", serve(a.restore))
}

// Summary is one session in a list: what its newest event tells.
type Summary struct {
	SessionID string    `json:"session_id"`
	Status    string    `json:"status"` // open, closed
	LastSeq   uint64    `json:"last_seq"`
	LastEvent string    `json:"last_event"`
	UpdatedAt time.Time `json:"updated_at"`
	// Question is the beginning of the first message, of the newest sessions only.
	Question string `json:"question,omitempty"`
}

const (
	// asked bounds how many sessions of a list say their question, which costs a read
	// each: more than a person looks at.
	asked = 100
	// askedAtOnce keeps a list from taking all readers of the log.
	askedAtOnce = 8
	// questionEvents is how far into a log the question is looked for: a session opens, and
	// then is asked.
	questionEvents = 8
	// questionRunes is enough to recognise a session by.
	questionRunes = 120
)

func (a *API) list(r *http.Request, p auth.Principal) (any, error) {
	heads, err := a.log.Heads(r.Context(), p.Tenant, id.KindSession)
	if err != nil {
		return nil, err
	}
	out := make([]Summary, 0, len(heads))
	for _, h := range heads {
		l, err := subject.ParseName(h.Subject)
		if err != nil {
			return nil, err
		}
		one := Summary{
			SessionID: l.Entity.String(), Status: statusOpen, LastSeq: h.Sequence, LastEvent: string(h.Type), UpdatedAt: h.Time,
		}
		if h.Type == event.SessionClosed {
			one.Status = statusClosed
		}
		out = append(out, one)
	}
	if err := a.questions(r.Context(), heads, out); err != nil {
		return nil, err
	}
	return map[string]any{"sessions": out}, nil
}

// questions adds what the newest sessions were asked first. Heads come newest first.
func (a *API) questions(ctx context.Context, heads []*eventlog.Entry, out []Summary) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce)
	for i := range min(len(heads), asked) {
		g.Go(func() (err error) {
			out[i].Question, err = a.question(ctx, heads[i].Subject)
			return err
		})
	}
	return g.Wait()
}

// question returns the beginning of a session's first message, empty if it has none or it
// has expired.
func (a *API) question(ctx context.Context, name string) (text string, err error) {
	log, err := subject.ParseName(name)
	if err != nil {
		return "", err
	}
	n := 0
	err = a.log.Read(ctx, log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		if e.Type == event.MessageReceived {
			var d struct{ Content string }
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			text = d.Content
		}
		if n++; text != "" || n == questionEvents {
			return errPageFull
		}
		return nil
	})
	var cut *eventlog.TruncatedError
	if err != nil && !errors.Is(err, errPageFull) && !errors.Is(err, eventlog.ErrDeleted) && !errors.As(err, &cut) {
		return "", err
	}
	if words := []rune(strings.Join(strings.Fields(text), " ")); len(words) > questionRunes {
		return string(words[:questionRunes]), nil
	}
	return strings.Join(strings.Fields(text), " "), nil
}

// Values of a session's status.
const (
	statusOpen   = "open"
	statusClosed = "closed"
)

// errPageFull ends a read at the page's limit.
var errPageFull = errors.New("page full")

func (a *API) events(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.sessionLog(r, p)
	if err != nil {
		return nil, err
	}
	after, limit, err := page(r)
	if err != nil {
		return nil, err
	}
	events, next, more := []json.RawMessage{}, after, false
	err = a.log.Read(r.Context(), log, after, func(e *eventlog.Entry) error {
		if len(events) == limit {
			more = true
			return errPageFull
		}
		events, next = append(events, e.Raw), e.Cursor()
		return nil
	})
	var cut *eventlog.TruncatedError
	switch {
	case errors.As(err, &cut):
		return nil, fault.Newf(fault.HeadExpired, "History before seq %d has expired. Ask again with after=%d.", cut.First, cut.First-1)
	case errors.Is(err, eventlog.ErrBeyondEnd) && after.Seq > 0:
		if err := a.exists(r.Context(), log); err != nil {
			return nil, err
		}
		return nil, fault.New(fault.CursorInvalid).At("after")
	case err != nil && !errors.Is(err, errPageFull):
		return nil, err
	}
	if len(events) == 0 {
		if err := a.exists(r.Context(), log); err != nil {
			return nil, err
		}
	}
	return map[string]any{"events": events, "next": next.String(), "more": more}, nil
}

func page(r *http.Request) (after eventlog.Cursor, limit int, err error) {
	limit = defaultPage
	if s := r.URL.Query().Get("limit"); s != "" {
		limit, err = strconv.Atoi(s)
		if err != nil || limit < 1 || limit > maxPage {
			return after, 0, fault.Newf(fault.InvalidField, "limit must be a number from 1 to %d.", maxPage).At("limit")
		}
	}
	if s := r.URL.Query().Get("after"); s != "" {
		if after, err = eventlog.ParseCursor(s); err != nil {
			return after, 0, fault.New(fault.CursorInvalid).At("after").Wrap(err)
		}
	}
	return after, limit, nil
}

// exists returns fault.SessionNotFound for a log without events.
func (a *API) exists(ctx context.Context, log subject.Log) error {
	last, err := a.log.Last(ctx, log)
	if err == nil && last.Seq == 0 {
		return fault.New(fault.SessionNotFound)
	}
	return err
}

// sessionLog returns the log that the request names, within the principal's tenant.
func (a *API) sessionLog(r *http.Request, p auth.Principal) (subject.Log, error) {
	entity, err := id.ParseEntity(r.PathValue("id"))
	if err != nil {
		return subject.Log{}, fault.New(fault.SessionNotFound).Wrap(err)
	}
	log := subject.Log{Tenant: p.Tenant, Kind: id.KindSession, Entity: entity}
	if !p.Owns(log) {
		return subject.Log{}, fault.New(fault.SessionNotFound)
	}
	return log, nil
}
