// Package rpc asks and answers over NATS micro: typed requests and replies of the
// services, one subject per verb (subject.RPC).
//
// All replicas of a service share its requests. Faults travel; any other error of a
// handler becomes INTERNAL with a reference under which the server's log has it.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// version is that of the form of requests and replies, shown by `nats micro`.
	version = "1.0.0"
	// defaultConcurrency keeps as many reads of the event log on their way as the log
	// itself lets through: 16 streams, four readers each.
	defaultConcurrency = 64
	// waitingPerSlot bounds the requests that wait for a slot. With answers that take
	// 50 ms, the last of them is answered within a second.
	waitingPerSlot = 16
	// handlerTimeout ends a handler whose caller gave no deadline: longer than the
	// event log bears trouble with the bus (20 s).
	handlerTimeout = 30 * time.Second
	// handlerLimit ends any handler: longer than tools may run.
	handlerLimit = time.Hour
)

// Config says what a server is.
type Config struct {
	Service     id.Name
	Description string
	Concurrency int // requests per verb handled at a time; default 64. 16 times as many may wait
	Logger      zerolog.Logger
	Directory   *directory.Directory  // a request is answered when this copy has what its sender has seen; nil: at once
	Registry    prometheus.Registerer // nil: metrics are kept for nobody
}

// Server answers the requests to a service. It is a lifecycle component; any number
// of replicas may run.
type Server struct {
	conn      *bus.Conn
	cfg       Config
	log       zerolog.Logger
	metrics   *metrics
	broken    error // why it cannot start
	endpoints []*endpoint

	kill context.Context //nolint:containedctx // ends at Stop: handlers see it
	stop context.CancelCauseFunc
	quit context.Context //nolint:containedctx // ends at Drain or Stop: a start gives up
	end  context.CancelFunc

	mu      sync.Mutex
	state   state
	micro   micro.Service
	handled sync.WaitGroup
}

type state int

const (
	fresh state = iota
	running
	leaving // nothing new is taken
)

// errStopped is what the context of a handler ends with when the server stops.
var errStopped = errors.New("the service is stopping")

// NewServer returns a server without endpoints that is not started. The connection
// must outlive it.
func NewServer(c *bus.Conn, cfg Config) *Server {
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = defaultConcurrency
	}
	s := &Server{conn: c, cfg: cfg, log: cfg.Logger.With().Str("service", cfg.Service.String()).Logger()}
	s.metrics, s.broken = newMetrics(cfg.Registry, cfg.Service)
	s.kill, s.stop = context.WithCancelCause(context.Background())
	s.quit, s.end = context.WithCancel(s.kill)
	return s
}

// Name implements lifecycle.Component.
func (s *Server) Name() string { return s.cfg.Service.String() + " rpc" }

// Failed implements lifecycle.Component: a server ends when it is asked to. A lost
// connection is sought again.
func (s *Server) Failed() <-chan error { return nil }

// Start offers the endpoints on the bus. When it returns, requests arrive.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	if s.state != fresh {
		return fmt.Errorf("start the %s: it has been started or stopped before", s.Name())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.quit, cancel)() //nolint:contextcheck // the end of the server ends its start
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.offer(ctx); err != nil {
		s.hangUp()
		return fmt.Errorf("offer the %s service on the bus: %w", s.cfg.Service, err)
	}
	s.state = running
	return nil
}

// offer subscribes, and makes sure that the bus knows of it.
func (s *Server) offer(ctx context.Context) error {
	name := s.cfg.Service.String()
	m, err := micro.AddService(s.conn.NATS(), micro.Config{
		Name: name, Version: version, Description: s.cfg.Description, QueueGroup: name,
		Metadata:     map[string]string{"instance": s.conn.Instance()},
		StatsHandler: s.stats,
	})
	if err != nil {
		return err
	}
	s.micro = m
	for _, e := range s.endpoints {
		err := m.AddEndpoint(e.verb.String(), e, micro.WithEndpointSubject(subject.RPC(s.cfg.Service, e.verb)))
		if err != nil {
			return fmt.Errorf("verb %s: %w", e.verb, err)
		}
	}
	return s.conn.Flush(ctx)
}

// Drain takes no more requests and waits for those that have arrived.
func (s *Server) Drain(ctx context.Context) error {
	s.leave()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.handled.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends the handlers' contexts and returns when they have returned. Their
// callers are told to try again.
func (s *Server) Stop() {
	s.stop(errStopped)
	s.leave()
	s.handled.Wait()
}

func (s *Server) leave() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == running {
		s.hangUp()
	}
	s.state = leaving
}

// hangUp unsubscribes. What was sent to us before the bus knows of it is told to ask
// another replica.
func (s *Server) hangUp() {
	if s.micro == nil {
		return
	}
	if err := s.micro.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.log.Debug().Err(err).Msg("leaving the bus")
	}
}

// enter counts a request, unless it came too late.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == leaving {
		return false
	}
	s.handled.Add(1)
	return true
}
