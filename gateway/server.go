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

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/gateway/wire"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var _ lifecycle.Component = (*Server)(nil)

// maxHeader bounds the header of a request: credentials and cookies of a careless
// page fit.
const maxHeader = 16 << 10

// Server is one gateway. It implements lifecycle.Component.
type Server struct {
	cfg  Config
	dep  Deps
	hub  *wire.Hub
	http *http.Server
	fail chan error

	anonymous bool // nobody is asked for credentials
	draining  atomic.Bool
	ctx       context.Context //nolint:containedctx // the life of the sockets, ended by Stop
	cancel    context.CancelFunc

	mu       sync.Mutex
	listener net.Listener
	unwatch  func()
	conns    map[*conn]struct{}
	stopped  bool
	wg       sync.WaitGroup // readers and the HTTP server
}

// New returns a gateway that is not started, or an error that names the option
// which cannot be used. Without authentication it refuses any address but a
// loopback one.
func New(cfg Config, dep Deps) (*Server, error) {
	if err := errors.Join(cfg.check(), dep.check()); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if dep.Clock == nil {
		dep.Clock = time.Now
	}
	s := &Server{cfg: cfg, dep: dep, fail: make(chan error, 1), conns: map[*conn]struct{}{}}
	if s.anonymous = dep.Auth == auth.Anonymous(); s.anonymous {
		if err := auth.RequireLoopback(cfg.Addr); err != nil {
			return nil, err
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: cfg.HandshakeTimeout, MaxHeaderBytes: maxHeader,
		ReadTimeout: cfg.MessageTimeout, IdleTimeout: time.Minute,
	}
	s.hub = wire.NewHub(wire.Options{
		QueueBytes: cfg.QueueBytes, ReadLimit: cfg.ReadLimit, PingInterval: cfg.PingInterval,
		PongTimeout: cfg.PongTimeout, MessageTimeout: cfg.MessageTimeout, WriteStall: cfg.WriteStall,
	})
	return s, nil
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

// Start listens and serves.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.Join(errors.New("gateway: started after the end"), l.Close())
	}
	s.listener = l
	if s.dep.Directory != nil {
		s.unwatch = s.dep.Directory.Watch(s.membersChanged)
	}
	s.wg.Go(func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) && !s.draining.Load() {
			s.fail <- fmt.Errorf("gateway: %w", err)
		}
	})
	return nil
}

// Drain takes no new connections, asks every client to come back elsewhere, spread
// over Config.DrainSpread, and returns when they have gone.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	s.closeListener()
	all := s.open()
	for _, c := range all {
		c.end(fault.New(fault.Draining))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return nil
		case <-time.After(s.cfg.DrainSpread / time.Duration(len(all))):
		}
	}
	for _, c := range all {
		select {
		case <-c.sock.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.http.Shutdown(ctx)
}

// Stop cuts all connections and ends.
func (s *Server) Stop() {
	s.draining.Store(true)
	s.mu.Lock()
	s.stopped = true
	unwatch := s.unwatch
	s.unwatch = nil
	s.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	s.closeListener()
	s.cancel()
	_ = s.http.Close()
	s.hub.Close()
	s.wg.Wait()
}

func (s *Server) closeListener() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

func (s *Server) open() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// add registers a connection, or reports false when the gateway has ended.
func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.wg.Done()
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
