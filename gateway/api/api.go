// Package api serves the HTTP API below /api/v1: one table of routes, whose handlers ask the services over internal/rpc,
// send them commands, and read logs.
//
// Answers are JSON, and failures are problem documents (RFC 9457). Entities of other tenants do not exist.
package api

import (
	"net/http"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Prefix is the beginning of the path of every route.
const Prefix = "/api/v1"

// Config holds what the API works with. Conn, Log, Commands and Auth are required.
type Config struct {
	Conn     *bus.Conn
	Log      *eventlog.Store
	Commands *command.Sender
	Signer   *signature.Signer // of requests; nil: they leave unsigned
	Auth     Authenticator
	Sight    *sight.Sight // nil: every principal sees all of its tenant
	Logger   zerolog.Logger
	Status   func() wire.Status             // of the installation; nil: the route does not exist
	Stream   func(id.Kind) http.HandlerFunc // serves the log of that kind that the path names; nil: the routes do not exist
	Live     http.HandlerFunc               // serves the announcements of the tenant; nil: the route does not exist
	// Admit bounds the requests of a principal; nil = they have no bound.
	Admit func(*http.Request, auth.Principal) (leave func(), err error)
	Room  *answer.Room // bounds the bytes of large answers; nil = they have no bound
}

// API answers the requests. It is safe for concurrent use.
type API struct {
	cfg      Config
	payloads *payload.Store
	index    *index.Index
	server   Server
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, server: Server{Auth: cfg.Auth, Logger: cfg.Logger, Admit: cfg.Admit, Room: cfg.Room}}
	if cfg.Conn != nil {
		a.payloads = payload.New(cfg.Conn)
		a.index = index.New(cfg.Conn, cfg.Log)
	}
	return a
}
