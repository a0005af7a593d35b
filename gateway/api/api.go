// Package api serves the HTTP API below /api/v1: one table of routes, whose handlers ask the services over internal/rpc,
// send them commands, and read logs.
//
// Answers are JSON, and failures are problem documents (RFC 9457). Entities of other tenants do not exist.
package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/keyframe"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Prefix is the beginning of the path of every route.
const Prefix = "/api/v1"

// Config holds what the API works with. Conn, Log, Commands and Auth are required.
type Config struct {
	Conn     *bus.Conn
	Log      *eventlog.Store
	Commands *command.Sender
	Signer   *signature.Signer // of requests; nil: they leave unsigned
	// Signatures verifies dead letters of people before they are signed anew; nil: none of these is sent again.
	Signatures *signature.Verifier
	Auth       respond.Authenticator
	Sight      *sight.Sight // nil: every principal sees all of its tenant
	Logger     zerolog.Logger
	Status     func() wire.Status      // of the installation; nil: the route does not exist
	Settings   func() wire.SettingList // of this process; nil: the route does not exist
	Rates      func() wire.RateList    // of all processes; nil: the route does not exist
	// Examine looks at the installation; nil: the route does not exist.
	Examine func(context.Context) (wire.Installation, error)
	Stream  func(id.Kind) http.HandlerFunc // serves the log of that kind that the path names; nil: the routes do not exist
	Live    http.HandlerFunc               // serves the announcements of the tenant; nil: the route does not exist
	Login   *wire.OIDCLogin                // of people in the console; nil: they show API keys or tokens
	Reports http.HandlerFunc               // takes the reports of browsers about pages; nil: the route does not exist
	// Translate begins the translation of a log into the protocol that the parameter as of the query names; nil: the route does not exist.
	Translate func(l subject.Log, query url.Values) (Translation, error)
	// Admit bounds the requests of a principal; nil = they have no bound.
	Admit func(*http.Request, auth.Principal) (leave func(), err error)
	Room  *answer.Room // bounds the bytes of large answers; nil = they have no bound
	Actor Actor        // nil: the routes that wait for an outcome do not exist
}

// Translation gives the frames of the events of one log, which it takes in order.
type Translation struct {
	Fold func(event.Event)          // takes an event whose frames are not wanted; nil: Next may begin anywhere
	Next func(event.Event) [][]byte // takes an event and returns its frames, each one JSON text
}

// Actor carries out requests that wait for an outcome.
type Actor interface {
	// Act sends a command of the principal about the log, and returns the event that it has caused there: the first one of
	// which is returns true, also if the command came before. The Sequence of an event that has expired is 0. A refusal is
	// a Detailed fault. Approvals are for exactly the call that the log shows.
	Act(ctx context.Context, p auth.Principal, log subject.Log, c cmd.Command, is func(event.Event) bool) (event.Event, error)
	// Open makes the session of the log, which has no events, if the principal may.
	Open(ctx context.Context, p auth.Principal, log subject.Log) error
	// Name returns the id of a new session of the principal, which its first message opens.
	Name(p auth.Principal, wishes event.Preferences) (id.Entity, error)
}

// API answers the requests. It is safe for concurrent use.
type API struct {
	cfg      Config
	payloads *payload.Store
	index    *index.Index
	again    *command.Sender // of commands that were signed before, or never
	server   respond.Server

	keyframes *keyframe.Cache // of snapshots
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, keyframes: keyframe.New(), server: respond.Server{Auth: cfg.Auth, Logger: cfg.Logger, Admit: cfg.Admit, Room: cfg.Room}}
	if cfg.Conn != nil {
		a.payloads = payload.New(cfg.Conn)
		a.again = command.NewSender(cfg.Conn)
		a.index = index.New(cfg.Conn, cfg.Log)
	}
	return a
}
