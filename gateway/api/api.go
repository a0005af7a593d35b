// Package api serves the HTTP API below /api/v1: one table of routes, whose handlers ask the services over internal/rpc,
// send them commands, and read logs.
//
// Answers are JSON, and failures are problem documents (RFC 9457). Entities of other tenants do not exist.
package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/waggle-dev/waggle/gateway/api/keyframe"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	sender "github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
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
	Stream  func(id.Kind) http.HandlerFunc // serves the log of that kind that the path names; nil: the routes do not exist
	Live    http.HandlerFunc               // serves the announcements of the tenant; nil: the route does not exist
	Login   *wire.OIDCLogin                // of people in the console; nil: they show API keys or tokens
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

// API answers the requests. It is safe for concurrent use.
type API struct {
	cfg      Config
	payloads *payload.Store
	index    *index.Index
	again    *sender.Sender // of commands that were signed before, or never
	server   respond.Server

	keyframes *keyframe.Cache // of snapshots
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, keyframes: keyframe.New(), server: respond.Server{Auth: cfg.Auth, Edge: cfg.Edge, Protocol: Protocol, Admit: cfg.Admit}}
	if conn := cfg.Edge.Bus; conn != nil {
		a.payloads = payload.New(conn)
		a.again = sender.NewSender(conn)
		a.index = index.New(conn, cfg.Edge.Log)
	}
	return a
}
