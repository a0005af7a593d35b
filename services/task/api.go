package task

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/api"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

const (
	// defaultPage and maxPage bound the tasks of one answer, each of which is folded
	// from its log.
	defaultPage = 50
	maxPage     = 200
	// maxCancel bounds the body of a cancellation, which is a reason at most.
	maxCancel = 16 << 10
)

// API answers the HTTP requests about the swarm:
//
//	GET  /api/v1/agents?status=&capability=&name=&type=
//	GET  /api/v1/services        with the same parameters
//	GET  /api/v1/clients         with the same parameters
//	GET  /api/v1/mcp             with the same parameters
//	GET  /api/v1/tasks?before=<next of the page before>&limit=<n>
//	GET  /api/v1/tasks/{id}
//	POST /api/v1/tasks/{id}/cancel  with {"reason": "..."}, or nothing
//
// Errors are problem documents (RFC 9457). Every request is authenticated, and what
// belongs to another tenant does not exist.
type API struct {
	conn     *bus.Conn
	log      *eventlog.Store
	commands *command.Sender
	payloads *payload.Store
	server   api.Server
}

// NewAPI returns the API over the given log. Who is there is asked of the task service
// over the connection.
func NewAPI(conn *bus.Conn, log *eventlog.Store, commands *command.Sender, a auth.Authenticator, logger zerolog.Logger) *API {
	return &API{conn: conn, log: log, commands: commands, payloads: payload.New(conn), server: api.Server{Auth: a, Logger: logger}}
}

// Mount registers the API's routes.
func (a *API) Mount(mux *http.ServeMux) {
	serve := a.server.Serve
	mux.HandleFunc("GET /api/v1/agents", serve(a.peers("agents", cmd.ListAgents)))
	mux.HandleFunc("GET /api/v1/services", serve(a.peers("services", cmd.ListServices)))
	mux.HandleFunc("GET /api/v1/clients", serve(a.peers("clients", cmd.ListClients)))
	mux.HandleFunc("GET /api/v1/mcp", serve(a.peers("servers", cmd.ListServers)))
	mux.HandleFunc("GET /api/v1/tasks", serve(a.list))
	mux.HandleFunc("GET /api/v1/tasks/{id}", serve(a.show))
	mux.HandleFunc("POST /api/v1/tasks/{id}/cancel", serve(a.cancel))
}

// peers lists what the task service knows under the verb.
func (a *API) peers(member string, verb id.Name) api.Handler {
	return func(r *http.Request, p auth.Principal) (any, error) {
		q := r.URL.Query()
		filter := cmd.PeerFilter{Status: q.Get("status"), Capabilities: q["capability"], Name: q.Get("name"), Type: q.Get("type")}
		in := cmd.PeerRequest{Tenant: p.Tenant, Principal: p.Subject, Data: encode(filter)}
		var out cmd.PeerList
		if err := rpc.Call(r.Context(), a.conn, cmd.Task, verb, in, &out); err != nil {
			return nil, err
		}
		return map[string]any{member: out.Peers}, nil
	}
}

// Summary is one task in a list.
type Summary struct {
	cmd.TaskView
	UpdatedAt time.Time `json:"updated_at"`
	LastSeq   uint64    `json:"last_seq"`
}

// list returns a page of tasks, that which changed last first. Results that are stored as
// objects are referred to: a page of them would be too large.
func (a *API) list(r *http.Request, p auth.Principal) (any, error) {
	before, limit, err := page(r)
	if err != nil {
		return nil, err
	}
	heads, err := a.log.Heads(r.Context(), p.Tenant, id.KindTask)
	if err != nil {
		return nil, err
	}
	tasks, next := []Summary{}, ""
	for i, h := range heads {
		if !before.precedes(h) {
			continue
		}
		if len(tasks) == limit {
			next = markOfHead(heads[i-1])
			break
		}
		log, err := subject.ParseName(h.Subject)
		if err != nil {
			return nil, err
		}
		s, err := a.fold(r, log)
		switch {
		case errors.Is(err, fault.New(fault.TaskNotFound)):
			continue // its head has expired meanwhile
		case err != nil:
			return nil, err
		}
		tasks = append(tasks, s)
	}
	return map[string]any{"tasks": tasks, "next": next, "more": next != ""}, nil
}

// mark is a place in the list of tasks: what comes after the task that changed then.
type mark struct {
	at      time.Time
	subject string
}

// precedes reports whether a task comes after the mark.
func (m mark) precedes(e *eventlog.Entry) bool {
	if m.subject == "" {
		return true
	}
	if c := e.Time.Compare(m.at); c != 0 {
		return c < 0
	}
	return e.Subject > m.subject
}

func markOfHead(e *eventlog.Entry) string {
	return e.Time.UTC().Format(time.RFC3339Nano) + "_" + e.Subject
}

func page(r *http.Request) (before mark, limit int, err error) {
	limit = defaultPage
	q := r.URL.Query()
	if s := q.Get("limit"); s != "" {
		limit, err = strconv.Atoi(s)
		if err != nil || limit < 1 || limit > maxPage {
			return before, 0, fault.Newf(fault.InvalidField, "limit must be a number from 1 to %d.", maxPage).At("limit")
		}
	}
	if s := q.Get("before"); s != "" {
		at, name, ok := strings.Cut(s, "_")
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil || !ok || name == "" {
			return before, 0, fault.Newf(fault.InvalidField, "before must be the next of a page.").At("before")
		}
		before = mark{t, name}
	}
	return before, limit, nil
}

// Detail is one task with what happened to it.
type Detail struct {
	Summary
	Task   event.TaskCreatedData `json:"task"`
	Events []json.RawMessage     `json:"events"`
}

// show returns a task with its log, of which the newest maxEvents are shown. The task and
// its result are whole; events are as they are in the log, and refer to what is not in
// them.
func (a *API) show(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.taskLog(r, p)
	if err != nil {
		return nil, err
	}
	d := Detail{Events: []json.RawMessage{}}
	d.Summary, d.Task, err = a.read(r, log, func(e *eventlog.Entry) {
		d.Events = append(d.Events, e.Raw)
		d.Events = d.Events[max(0, len(d.Events)-maxEvents):]
	})
	if err == nil {
		err = errors.Join(a.payloads.Show(r.Context(), log.Tenant, &d.TaskView), a.payloads.Show(r.Context(), log.Tenant, &d.Task))
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// maxEvents bounds the events of one answer: of the largest (256 KiB each) they fit into
// memory, and a task has seldom as many.
const maxEvents = 200

func (a *API) fold(r *http.Request, log subject.Log) (Summary, error) {
	s, _, err := a.read(r, log, func(*eventlog.Entry) {})
	return s, err
}

// read folds a task's log, of which each event is passed on.
func (a *API) read(r *http.Request, log subject.Log, each func(*eventlog.Entry)) (s Summary, t event.TaskCreatedData, err error) {
	var st assignment.State
	err = a.log.Read(r.Context(), log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		each(e)
		s.UpdatedAt, s.LastSeq = e.Time, e.Sequence
		return st.Apply(e.Event)
	})
	var cut *eventlog.TruncatedError
	if errors.As(err, &cut) || err == nil && st.Created.IsZero() {
		return s, t, fault.New(fault.TaskNotFound)
	}
	s.TaskView = st.View()
	return s, st.Task(), err
}

// cancelBody is what a cancellation may say.
type cancelBody struct {
	Reason string `json:"reason"`
}

// cancel stops a task. It is accepted when it is answered, and carried out soon after.
func (a *API) cancel(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.taskLog(r, p)
	if err != nil {
		return nil, err
	}
	s, err := a.fold(r, log)
	switch {
	case err != nil:
		return nil, err
	case !s.EndedAt.IsZero():
		return nil, fault.New(fault.TaskFinished)
	}
	var body cancelBody
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxCancel))
	if err != nil {
		return nil, fault.New(fault.BadJSON).Wrap(err)
	}
	if len(raw) > 0 && json.Unmarshal(raw, &body) != nil {
		return nil, fault.New(fault.BadJSON)
	}
	c := cmd.Command{
		ID: uuid.NewString(), Service: cmd.Task, Verb: cmd.CancelTask, Tenant: log.Tenant, Key: log.Entity,
		Principal: p.Subject, Source: "waggle/api", Time: time.Now(),
		Data: encode(cmd.CancelTaskData{TaskID: s.TaskID, Reason: body.Reason}),
	}
	if err := a.commands.Send(r.Context(), c); err != nil {
		return nil, err
	}
	return map[string]any{"accepted": true, "command_id": c.ID}, nil
}

// taskLog returns the log that the request names, within the principal's tenant.
func (a *API) taskLog(r *http.Request, p auth.Principal) (subject.Log, error) {
	log := taskLog(p.Tenant, r.PathValue("id"))
	if !p.Owns(log) {
		return subject.Log{}, fault.New(fault.TaskNotFound)
	}
	return log, nil
}
