package gateway

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/binding/multi"
	"github.com/waggle-dev/waggle/gateway/binding/swarm"
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

// errEnded is the error of Start after Stop.
var errEnded = errors.New("gateway: started after it was stopped")

// Server is one gateway. It implements lifecycle.Component.
type Server struct {
	cfg  Config
	dep  Deps
	http *http.Server
	fail chan error
	met  *metrics

	gate     *admission.Gate
	name     id.Name // of the instance
	verified verified
	workers  workers

	shared *binding.Gateway
	multi  *multi.Sessions
	swarm  *swarm.Swarm

	announcements *watch.Announcements
	sent          sse.Stats // by streams of events

	ctx    context.Context //nolint:containedctx // lives as long as the sockets; Stop ends it
	cancel context.CancelFunc

	mu       sync.Mutex
	hub      *ws.Hub
	listener net.Listener
	lease    *directory.Lease
	unwatch  func()
	conns    map[connection]struct{}
	extra    []extra
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
		cfg: cfg, dep: dep, fail: make(chan error, 1), conns: map[connection]struct{}{},
	}
	s.announcements = watch.NewAnnouncements(dep.Conn, dep.Logger)
	var err error
	if s.name, err = id.ParseName(dep.Conn.Instance()); err != nil {
		return nil, fmt.Errorf("gateway: the connection's instance: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.gate, err = s.newGate(); err != nil {
		return nil, err
	}
	s.met = newMetrics(s)
	s.share()
	s.http = s.httpServer(s.routes())
	return s, s.met.register()
}

// share makes the parts that bindings share.
func (s *Server) share() {
	store := payload.New(s.dep.Conn)
	s.shared = &binding.Gateway{
		Name: s.name, Source: "waggle/gateway/" + s.dep.Conn.Instance(), Started: s.dep.Clock(), Clock: s.dep.Clock,
		Logger: s.dep.Logger, Life: s.ctx, Bus: s.dep.Conn, Log: s.dep.Log, Directory: s.dep.Directory, Payloads: store,
		Streams: &stream.Source{
			Log: s.dep.Log, Loader: stream.NewLoader(store, s.dep.Logger), Logger: s.dep.Logger, Clock: s.dep.Clock, Lagged: s.met.lags.Inc,
		},
		Recipients: binding.NewRecipients(s.name, s.dep.Logger),
		Metrics: binding.Metrics{
			Acks: s.met.acks, DroppedAcks: s.met.strays, Lost: s.met.lost, Faults: s.met.faults, Dropped: s.met.dropped, Oversized: s.met.oversized,
		},
		QueueBytes: s.cfg.QueueBytes, MessageRate: s.cfg.MessageRate, MessageBurst: s.cfg.MessageBurst, ReadyTimeout: s.cfg.ReadyTimeout,
		WorkersMissing: s.workers.missing.Load, Go: func(f func()) { s.wg.Go(f) }, Later: s.async,
	}
	s.multi = multi.New(s.shared, multi.Config{Heartbeat: s.cfg.Heartbeat, Sessions: s.cfg.SessionsPerSocket})
	s.swarm = swarm.New(s.shared, s.cfg.Participants)
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
	if err := s.shared.Recipients.Subscribe(s.dep.Conn); err != nil {
		return errors.Join(fmt.Errorf("gateway: %w", err), shut())
	}
	lease, err := s.join(ctx)
	if err != nil {
		s.shared.Recipients.Close()
		return errors.Join(fmt.Errorf("gateway: %w", err), shut())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.shared.Recipients.Close()
		s.leave(lease) //nolint:contextcheck // ending takes a context of its own
		return errors.Join(errEnded, shut())
	}
	s.hub = ws.NewHub(ws.Options{
		QueueBytes: s.cfg.QueueBytes, ReadLimit: s.cfg.ReadLimit, PingInterval: s.cfg.PingInterval,
		PongTimeout: s.cfg.PongTimeout, MessageTimeout: s.cfg.MessageTimeout, WriteStall: s.cfg.WriteStall,
		LargeMessages: s.cfg.Participants.LargeFrames,
	})
	s.listener, s.lease = l, lease
	if s.dep.Directory != nil {
		s.unwatch = s.dep.Directory.Watch(s.membersChanged)
		s.wg.Go(s.pingWorkers)
	}
	s.wg.Go(s.flushAll)
	if s.dep.swarm() {
		s.wg.Go(s.swarm.Run)
	}
	s.serveExtra(extra)
	s.wg.Go(func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.fail <- fmt.Errorf("gateway: %w", err)
		}
	})
	s.dep.Logger.Info().Stringer("addr", l.Addr()).Bool("anonymous", s.gate.Anonymous).Msg("listen for clients")
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
	unwatch, lease, listener, hub, extra := s.unwatch, s.lease, s.listener, s.hub, s.extra
	s.unwatch, s.lease = nil, nil
	s.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	s.cancel()
	s.shared.Recipients.Close()
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
	s.swarm.Stop()
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

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// connection is a client's link to the gateway, over any transport. Only flush blocks.
type connection interface {
	// Protocol names its protocol in metrics.
	Protocol() string
	// Settle checks whether the services that its messages wait for have started.
	Settle()
	// retire sends its client to another gateway, after the requests in progress.
	retire()
	// left is closed when the connection has ended.
	left() <-chan struct{}
	// flush sends its acknowledgements. It may block.
	flush(ctx context.Context)
	// queued returns the bytes that wait to be written, except for those that the hub counts.
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

// async runs f, for which Stop waits, unless the gateway has been stopped.
func (s *Server) async(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.wg.Go(f)
	}
}

// flushAll sends the acknowledgements of all connections every Config.AckInterval, until the
// gateway stops.
func (s *Server) flushAll() {
	t := time.NewTicker(s.cfg.AckInterval)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
		}
		for _, c := range s.open() {
			c.flush(s.ctx)
		}
	}
}
