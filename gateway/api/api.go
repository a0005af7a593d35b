// Package api serves the HTTP API below /api/v1. Each resource is a type with its routes and their handlers, which ask the services
// over internal/rpc, send them commands, and read logs. The API composes the resources.
//
// Answers are JSON, and failures are problem documents (RFC 9457). Entities of other tenants do not exist.
package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	sender "github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Protocol is the name of the API in the audit log, and the dialect of sessions that it opens.
const Protocol = "api"

// Prefix is the beginning of the path of every route.
const Prefix = "/api/v1"

// Config holds what the API works with. Edge and Auth are required.
type Config struct {
	Edge *edge.Edge
	// Signatures verifies dead letters of people before they are signed anew; nil: none of these is sent again.
	Signatures *signature.Verifier
	Auth       respond.Authenticator
	Status     func() wire.Status      // of the installation; nil: the route does not exist
	Settings   func() wire.SettingList // of this process; nil: the route does not exist
	Rates      func() wire.RateList    // of all processes; nil: the route does not exist
	// Examine looks at the installation; nil: the route does not exist.
	Examine func(context.Context) (wire.Installation, error)
	// Connections lists those of all gateways; nil: the route does not exist.
	Connections func(context.Context, cmd.ConnectionsRequest) (wire.ConnectionList, error)

	Stream  func(id.Kind) http.HandlerFunc // serves the log of that kind that the path names; nil: the routes do not exist
	Live    http.HandlerFunc               // serves the announcements of the tenant; nil: the route does not exist
	Console wire.ConsoleInfo               // of the pages, before they have credentials
	Reports http.HandlerFunc               // takes the reports of browsers about pages; nil: the route does not exist
	// Translate begins the translation of a log into the protocol that the parameter as of the query names; nil: the route does not exist.
	Translate func(l subject.Log, query url.Values) (Translation, error)
	// Admit bounds the requests of a principal; nil = they have no bound.
	Admit func(*http.Request, auth.Principal) (leave func(), err error)
}

// Translation gives the frames of the events of one log, which it takes in order.
type Translation struct {
	Fold func(event.Event)          // takes an event whose frames are not wanted; nil: Next may begin anywhere
	Next func(event.Event) [][]byte // takes an event and returns its frames, each one JSON text
}

// Route is a request that the API answers: what the OpenAPI document says of it, and its handler. A route without a handler does not
// exist in this installation.
type Route = openapi.Route

// resource is a noun of the API, with all that may be asked of it.
type resource interface{ routes() []Route }

// parts are what the resources work with.
type parts struct {
	edge     *edge.Edge
	server   respond.Server
	payloads *payload.Store
	index    *index.Index
}

// API answers the requests. It is safe for concurrent use.
type API struct{ routes []Route }

// New returns the API.
func New(cfg Config) *API {
	p := &parts{edge: cfg.Edge, server: respond.Server{Auth: cfg.Auth, Edge: cfg.Edge, Protocol: Protocol, Admit: cfg.Admit}}
	letters := letters{parts: p, signatures: cfg.Signatures}
	if conn := cfg.Edge.Bus; conn != nil {
		p.payloads = payload.New(conn)
		p.index = index.New(conn, cfg.Edge.Log)
		letters.again = sender.NewSender(conn)
	}
	sessions, logs := sessions{p}, logs{p}
	a := &API{}
	for _, r := range []resource{
		sessions,
		messages{p, sessions},
		plans{p, sessions},
		questions{p},
		tasks{p},
		teams{p},
		participants{p},
		tools{p},
		logs,
		frames{p, logs, cfg.Translate},
		newSnapshots(p, logs),
		artifacts{p, logs},
		streams{cfg.Stream, cfg.Live},
		letters,
		installation{p, cfg.Settings, cfg.Rates, cfg.Examine},
		connections{p, cfg.Connections},
		system{p, cfg.Status, cfg.Console, cfg.Reports},
	} {
		a.routes = append(a.routes, r.routes()...)
	}
	return a
}

// Mount registers the routes.
func (a *API) Mount(mux *http.ServeMux) {
	for _, r := range a.routes {
		if r.Handler != nil {
			mux.HandleFunc(r.Method+" "+Prefix+r.Path, r.Handler)
		}
	}
}

// Routes returns the table of routes.
func Routes() []Route { return New(Config{Edge: &edge.Edge{}}).routes }

//go:generate go test -count=1 -run ^TestDocumentIsCurrent$ -update .

// Document returns the OpenAPI document of the routes.
func Document() ([]byte, error) {
	return openapi.Document(Prefix, Routes(), []openapi.Tag{
		{Name: "sessions", About: "Conversations: messages, runs and their steps, states."},
		{Name: "questions", About: "Questions to people: approvals of tools, plans and budgets, questions of agents."},
		{Name: "teams", About: "Teams of agents, with messages to their members."},
		{Name: "tasks", About: "Tasks of the swarm."},
		{Name: "swarm", About: "Agents, services, clients and MCP servers, and calls of their tools."},
		{Name: "events", About: "Logs and streams of what happens, and the files that logs name."},
		{Name: "installation", About: "The installation and its operation."},
		{Name: "system", About: "The principal, the console, schemas and this document."},
	})
}
