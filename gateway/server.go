// Package gateway is the edge of Waggle: it accepts WebSocket connections, turns
// the frames of their clients into commands on the bus and shows them the events of
// the log that they watch.
//
// A gateway is stateless. Its memory is dispensable: a client that reconnects to any other
// gateway with the last seq that it saw gets exactly the events after it. Every queue has a
// bound in bytes, and a slow client delays only itself.
//
// A connection reads, counts and authenticates in one way, whatever its dialect. Its route
// names the binding that handles its messages: Single, Multi, Team or Swarm. Connections of
// all routes, except for those of agents and services, show any run of the tenant with the
// parameter watch=<kind>/<id>, whatever dialect it was begun in; the messages of their clients
// go to the service that manages such runs. A principal with the role of a viewer sees
// everything, and its commands are refused.
//
// Package admission decides which requests become connections, package transport carries
// messages on them, package stream shows logs on them, package binding connects them to sessions,
// runs or the swarm, and package dialect translates frames.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/asp/participants"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/census"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/forward"
	"github.com/waggle-dev/waggle/gateway/myagent/sessions"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/translation"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/reuse"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

var _ lifecycle.Component = (*Server)(nil)

const (
	// maxHeader bounds the header of a request: credentials and cookies of a careless
	// page fit.
	maxHeader = 16 << 10
	// idleHTTP is longer than the interval of common probes, so that they keep their
	// connection.
	idleHTTP = time.Minute
	// leaveMaxWait bounds how long Stop tells the directory: without a bus the lease
	// runs out by itself.
	leaveMaxWait = time.Second
)

// errEnded is the error of Start after Stop.
var errEnded = errors.New("gateway: started after it was stopped")

// Server is one gateway. It implements lifecycle.Component.
type Server struct {
	*answers
	door      *door
	elsewhere *elsewhere
	streams   *streams
	listeners *listeners

	cfg  Config
	dep  Deps
	http *http.Server
	fail chan error
	met  *metrics

	gate     *admission.Gate
	foreign  admission.Foreign
	refusals *audit.Gatherer // of clients, for the audit log
	proxies  *admission.Proxies
	requests *admission.Requests
	inboxes  *admission.Inboxes
	room     *answer.Room // of large answers

	answering atomic.Int64 // HTTP requests, streams included
	arrivals  *arrival.Table
	name      id.Name // of the instance
	ready     *readiness
	conns     *connections
	census    *census.Census
	workers   *workerWatch

	shared *binding.Gateway
	multi  *sessions.Sessions
	swarm  *participants.Swarm

	cells       *forward.Forwarder // nil in an installation of one cell
	sight       *sight.Sight
	pageReports http.Handler

	short  *reuse.Goroutines // handle messages and open connections
	ctx    context.Context   //nolint:containedctx // lives as long as the sockets; Stop ends it
	cancel context.CancelFunc

	drainMaxWait time.Duration

	mu      sync.Mutex
	hub     *ws.Hub
	lease   *directory.Lease
	unwatch func()
}

// share makes the parts that bindings share.
func (s *Server) share() {
	s.workers = &workerWatch{conn: s.dep.Conn, directory: s.dep.Directory, needed: func() bool { return s.conns.count() > 0 }}
	store := payload.New(s.dep.Conn)
	outside := &edge.Edge{
		Name: s.name, Source: "waggle/gateway/" + s.dep.Conn.Instance(), Clock: s.dep.Clock, Logger: s.dep.Logger,
		Bus: s.dep.Conn, Commands: s.dep.Commands, Log: s.dep.Log,
		Streams: &stream.Source{
			Log: s.dep.Log, Loader: stream.NewLoader(store, s.dep.Logger), Logger: s.dep.Logger, Clock: s.dep.Clock,
			Lagged: func(why stream.Reason) { s.met.lags.WithLabelValues(string(why)).Inc() },
		},
		Sight: s.sight, Recipients: edge.NewRecipients(s.name, s.dep.Logger), Signer: s.dep.Signer, Audit: s.dep.Audit, Room: s.room,
		MaxWait: min(s.cfg.ReadyTimeout, edge.DefaultMaxWait), Rules: s.dep.Rules,
	}
	s.shared = &binding.Gateway{
		Edge: outside, Started: s.dep.Clock(), Life: s.ctx, Directory: s.dep.Directory, Payloads: store,
		MayOpenInbox: func(p auth.Principal) error { return s.inboxes.Open(p, s.gate.Anonymous) },
		Metrics: binding.Metrics{
			Acks: s.met.acks, DroppedAcks: s.met.strays, Lost: s.met.lost, Faults: s.met.faults, Dropped: s.met.dropped, Oversized: s.met.oversized,
			Resumes: s.met.resumes, Expired: s.met.expired,
		},
		QueueBytes: s.cfg.QueueBytes, MessageRate: s.cfg.MessageRate, MessageBurst: s.cfg.MessageBurst, ReadyTimeout: s.cfg.ReadyTimeout,
		WorkersMissing: s.workers.gone, Go: func(f func()) { s.conns.work.Go(f) }, Later: func(f func()) { s.conns.async(f) },
	}
	s.census = census.New(census.Config{
		Conn: s.dep.Conn, Name: s.name.String(), Clock: s.dep.Clock, Own: s.own, Gateways: s.gateways,
	})
	s.multi = sessions.New(s.shared, sessions.Config{Heartbeat: s.cfg.Heartbeat, Sessions: s.cfg.SessionsPerSocket})
	s.swarm = participants.New(s.shared, s.cfg.Participants)
}

// newGate returns the gate of the configuration. Without authentication only this machine
// may connect.
func (s *Server) newGate() (*admission.Gate, error) {
	needsLoopback := s.cfg.requireLoopback()
	names := s.cfg.names()
	names.Loopback = needsLoopback == nil
	if _, err := s.dep.Auth.Authenticate(s.ctx, ""); err == nil { // It accepts a client without a token.
		if needsLoopback != nil {
			return nil, needsLoopback
		}
		names.Anonymous = true
	}
	return admission.NewGate(admission.Config{
		Names: names, PerIP: s.cfg.PerIP, HandshakeRate: s.cfg.HandshakeRate, PerPrincipal: s.cfg.PerPrincipal,
	}, s.dep.Auth, s.dep.Quota, s.dep.Clock)
}

func (d Deps) withDefaults() Deps {
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Registry == nil {
		d.Registry = prometheus.NewRegistry()
	}
	return d
}

// Name implements lifecycle.Component.
func (s *Server) Name() string { return "gateway" }

// Failed implements lifecycle.Component.
func (s *Server) Failed() <-chan error { return s.fail }

// Addr returns the address listened on, or nil before Start.
func (s *Server) Addr() net.Addr { return s.listeners.addr() }

// LegacyAddrs returns the addresses of the extra listeners by the path that they
// serve; none before Start.
func (s *Server) LegacyAddrs() map[string]net.Addr { return s.listeners.extraAddrs() }

// join lists the gateway in the directory.
func (s *Server) join(ctx context.Context) (*directory.Lease, error) {
	if s.dep.Directory == nil {
		return nil, ctx.Err()
	}
	return s.dep.Directory.Join(ctx, directory.Member{
		What: directory.WhatService, Name: wirecmd.Gateways, Instance: s.name, Started: s.dep.Clock(),
	})
}

func (s *Server) leave(l *directory.Lease) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveMaxWait)
	defer cancel()
	if err := l.Leave(ctx); err != nil {
		s.dep.Logger.Debug().Err(err).Msg("failed to remove gateway from directory")
	}
}

// Stop cuts all connections and ends.
func (s *Server) Stop() {
	s.mu.Lock()
	s.conns.stop()
	unwatch, lease, hub := s.unwatch, s.lease, s.hub
	s.unwatch, s.lease = nil, nil
	s.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	s.cancel()
	s.shared.Recipients.Close()
	s.census.Stop()
	_ = s.http.Close()
	_ = s.listeners.close()
	if hub != nil {
		hub.Close()
	}
	s.leave(lease)
	s.conns.work.Wait()
	if s.cells != nil {
		s.cells.Stop()
	}
	s.swarm.Stop()
	s.refusals.Close()
	s.met.unregister()
}

// sockets returns the hub, nil before Start.
func (s *Server) sockets() *ws.Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub
}

// Deps are the dependencies of a gateway. Conn, Log, Commands, Auth and Routes
// are required.
type Deps struct {
	Logger    zerolog.Logger
	Registry  *prometheus.Registry // of its metrics, which the gateway does not serve; nil = one of its own
	Conn      *bus.Conn
	Log       *eventlog.Store
	Commands  *command.Sender
	Directory *directory.Directory // nil = services count as running, and the gateway is not listed
	Auth      auth.Authenticator
	Routes    map[string]Route        // by path. Those of a swarm need Directory
	Status    func() wire.Status      // of the installation, for the HTTP API; nil = not served
	Settings  func() wire.SettingList // of this process, for the HTTP API; nil = not served
	Rates     func() wire.RateList    // of all processes, for the HTTP API; nil = not served
	// Examine looks at the installation, for the HTTP API; nil = not served.
	Examine  func(context.Context) (wire.Installation, error)
	Topology bus.Topology // /readyz verifies it; zero = bus.DefaultTopology
	Version  string
	Clock    func() time.Time // wall clock for frames and expiry; nil = time.Now

	Quota *quota.Connections // of connections and messages; nil = no quotas
	Audit *audit.Writer      // the audit log; nil = none

	Access access.Policy // to sessions
	Rules  []edge.Rule   // of this installation, about what clients may have done

	Cells *Cells // nil = the installation has one cell

	Console wire.ConsoleInfo // of the pages, before they have credentials

	Pages Pages // that people see in a browser; nil = none

	Signer *signature.Signer // of the commands of clients; nil: they leave unsigned, and services refuse them

	Signatures *signature.Verifier // of dead letters that operators send again; nil: those of people are not sent again
}

// Pages are files for browsers. Everybody may read them: what they show, they ask the API for.
type Pages interface {
	http.Handler
	// Serves reports whether a request is for the pages.
	Serves(r *http.Request) bool
	// Lost answers a browser that asks for a page which does not exist, and reports whether it has answered.
	Lost(w http.ResponseWriter, r *http.Request) bool
}

// Cells places a gateway in an installation of several cells.
type Cells struct {
	Directory *cell.Directory
	Name      id.Name // of the gateway's own cell
	URL       string  // under which gateways of other cells reach this one
}

func (d Deps) check() error {
	switch {
	case d.Conn == nil, d.Log == nil, d.Commands == nil, d.Auth == nil:
		return errors.New("gateway: Conn, Log, Commands and Auth are required")
	case len(d.Routes) == 0:
		return errors.New("gateway: at least one dialect is required")
	case d.swarm() && d.Directory == nil:
		return errors.New("gateway: the participants of a swarm need a directory")
	}
	return nil
}

// swarm reports whether any route belongs to a swarm.
func (d Deps) swarm() bool {
	for _, route := range d.Routes {
		if route.swarm {
			return true
		}
	}
	return false
}

// checkLegacy returns an error that names the extra listeners whose paths have no route.
func (c Config) checkLegacy(dep Deps) error {
	var errs []error
	for _, l := range c.Legacy {
		for _, path := range l.Paths {
			if _, ok := dep.Routes[path]; !ok {
				errs = append(errs, fmt.Errorf("gateway.legacy: %s: nothing is served under %q", l.Addr, path))
			}
		}
	}
	return errors.Join(errs...)
}

// metrics of one gateway. Labels have fixed sets of values, whatever clients send.
type metrics struct {
	registry prometheus.Registerer
	all      []prometheus.Collector

	frames    prometheus.Counter
	received  prometheus.Counter
	acks      prometheus.Counter
	strays    prometheus.Counter
	lost      prometheus.Counter
	lags      *prometheus.CounterVec
	closes    *prometheus.CounterVec
	refused   *prometheus.CounterVec
	faults    *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	oversized *prometheus.CounterVec
	resumes   *prometheus.CounterVec
	expired   prometheus.Counter
	reports   *prometheus.CounterVec
	requests  prometheus.Counter
	codes     map[int]string // the close codes that have a label of their own
}

// unregister lets another gateway of the process register.
func (m *metrics) unregister() {
	for _, c := range m.all {
		m.registry.Unregister(c)
	}
}

// Route is the protocol of one path, and the binding of its connections.
type Route struct {
	protocol string
	frames   translation.Protocol // of logs that its clients watch; nil: they watch none
	swarm    bool                 // needs the directory
	policy   func(*Server) binding.Policy
	bind     bind
}

// bind returns the binding of a connection for a request, or the fault of its query.
type bind func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error)
