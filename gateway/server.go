package gateway

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/binding/watch"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/payload"
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
	// leavePatience bounds how long Stop tells the directory: without a bus the lease
	// runs out by itself.
	leavePatience = time.Second
)

// errEnded is why a server that was stopped does not start.
var errEnded = errors.New("gateway: started after it was stopped")

// Server is one gateway. It implements lifecycle.Component.
type Server struct {
	cfg  Config
	dep  Deps
	http *http.Server
	fail chan error
	met  *metrics

	gate     *admission.Gate
	source   string
	name     id.Name   // of the instance
	born     time.Time // by the clock of the frames
	verified verified
	workers  workers
	moved    chan struct{} // the directory has changed: see who has lost its place

	payloads *payload.Store
	loader   *stream.Loader
	streams  *stream.Source

	announcements *watch.Announcements
	sent          sse.Stats // by streams of events

	ctx    context.Context //nolint:containedctx // the life of the sockets, ended by Stop
	cancel context.CancelFunc

	mu       sync.Mutex
	hub      *ws.Hub
	listener net.Listener
	lease    *directory.Lease
	unwatch  func()
	conns    map[connection]struct{}
	links    map[string]hearer // sockets that are said things to, by the id of the connection; peers apart
	peers    map[string]*peer  // sockets of peers, by the id of the connection
	places   map[*place]struct{}
	extra    []extra
	asides   *hearing
	draining bool
	stopped  bool
	wg       sync.WaitGroup // readers and the HTTP server
}

// New returns a gateway that is not started, or an error that names the option
// which cannot be used. Without authentication it refuses any address but a
// loopback one.
func New(cfg Config, dep Deps) (*Server, error) {
	if err := errors.Join(cfg.check(), dep.check(), cfg.checkLegacy(dep)); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	dep = dep.withDefaults()
	s := &Server{
		cfg: cfg, dep: dep, fail: make(chan error, 1), conns: map[connection]struct{}{}, links: map[string]hearer{},
		peers: map[string]*peer{}, places: map[*place]struct{}{}, moved: make(chan struct{}, 1),
		born: dep.Clock(), source: "waggle/gateway/" + dep.Conn.Instance(),
		payloads: payload.New(dep.Conn),
	}
	s.loader = stream.NewLoader(s.payloads, dep.Logger)
	s.announcements = watch.NewAnnouncements(dep.Conn, dep.Logger)
	s.streams = &stream.Source{Log: dep.Log, Loader: s.loader, Logger: dep.Logger, Clock: dep.Clock, Lagged: func() { s.met.lags.Inc() }}
	var err error
	if s.name, err = id.ParseName(dep.Conn.Instance()); err != nil {
		return nil, fmt.Errorf("gateway: the connection's instance: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.gate, err = s.newGate(); err != nil {
		return nil, err
	}
	s.http = s.httpServer(s.routes())
	s.met, err = newMetrics(s)
	return s, err
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

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: s.cfg.HandshakeTimeout, MaxHeaderBytes: maxHeader,
		ReadTimeout: s.cfg.MessageTimeout, IdleTimeout: idleHTTP,
		ErrorLog: stdlog.New(s.dep.Logger.With().Str("level", "debug").Logger(), "", 0),
	}
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
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Start listens, joins the directory and serves.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	extra, err := s.listenExtra(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	shut := func() error { return errors.Join(l.Close(), closeExtra(extra)) }
	asides, err := s.hear()
	if err != nil {
		return errors.Join(fmt.Errorf("gateway: %w", err), shut())
	}
	lease, err := s.join(ctx)
	if err != nil {
		asides.end()
		return errors.Join(fmt.Errorf("gateway: %w", err), shut())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		asides.end()
		s.leave(lease) //nolint:contextcheck // ending takes a context of its own
		return errors.Join(errEnded, shut())
	}
	s.asides = asides
	s.hub = ws.NewHub(ws.Options{
		QueueBytes: s.cfg.QueueBytes, ReadLimit: s.cfg.ReadLimit, PingInterval: s.cfg.PingInterval,
		PongTimeout: s.cfg.PongTimeout, MessageTimeout: s.cfg.MessageTimeout, WriteStall: s.cfg.WriteStall,
		LargeMessages: s.cfg.Peers.LargeFrames,
	})
	s.listener, s.lease = l, lease
	if s.dep.Directory != nil {
		s.unwatch = s.dep.Directory.Watch(s.membersChanged)
		s.wg.Go(s.pingWorkers)
	}
	s.wg.Go(s.sendAcks)
	if len(s.dep.Peers) > 0 {
		s.wg.Go(s.keepPlaces)
	}
	s.serveExtra(extra)
	s.wg.Go(func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.fail <- fmt.Errorf("gateway: %w", err)
		}
	})
	s.dep.Logger.Info().Stringer("addr", l.Addr()).Bool("anonymous", s.gate.Anonymous).Msg("gateway listens")
	return nil
}

// join lists the gateway in the directory.
func (s *Server) join(ctx context.Context) (*directory.Lease, error) {
	if s.dep.Directory == nil {
		return nil, ctx.Err()
	}
	return s.dep.Directory.Join(ctx, directory.Member{
		What: directory.WhatService, Name: id.MustName("gateway"), Instance: s.name, Started: s.dep.Clock(),
	})
}

func (s *Server) leave(l *directory.Lease) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	if err := l.Leave(ctx); err != nil {
		s.dep.Logger.Debug().Err(err).Msg("fail to withdraw gateway from directory")
	}
}

// Stop cuts all connections and ends.
func (s *Server) Stop() {
	s.mu.Lock()
	s.stopped, s.draining = true, true
	unwatch, lease, listener, hub, asides, extra := s.unwatch, s.lease, s.listener, s.hub, s.asides, s.extra
	s.unwatch, s.lease, s.asides = nil, nil, nil
	s.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	s.cancel()
	asides.end()
	_ = s.http.Close()
	_ = closeExtra(extra)
	if listener != nil {
		_ = listener.Close()
	}
	if hub != nil {
		hub.Close()
	}
	s.leave(lease)
	s.wg.Wait()
	s.lapsePlaces()
	s.met.unregister()
}

// sockets returns the hub, nil before Start.
func (s *Server) sockets() *ws.Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// attached counts the sessions on sockets that hold several.
func (s *Server) attached() (n int) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.links))
	s.mu.Unlock()
	for _, to := range all {
		m, ok := to.(*many)
		if !ok {
			continue
		}
		m.mu.Lock()
		n += len(m.sessions)
		m.mu.Unlock()
	}
	return n
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// connection is what is counted and drained, whatever its transport. No method blocks.
type connection interface {
	// protocol is the protocol that is spoken on it, in metrics.
	protocol() string
	// settle: services may have come that its messages wait for.
	settle()
	// retire sends its client to another gateway, after what is being done for it.
	retire()
	// left is closed when nothing of it is left.
	left() <-chan struct{}
	// queued returns the bytes that wait to be written, of those that no hub counts.
	queued() int
}

// open returns the connections.
func (s *Server) open() []connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]connection, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
