// Package rpc sends requests over NATS micro and answers them: typed requests and replies of the services, one
// subject per verb (subject.RPC).
//
// All replicas of a service share its requests. A fault reaches the caller; any other error of a handler becomes
// INTERNAL with a reference under which the server has logged it.
//
// Requests that outlast one message are operations (HandleOperations, Operate): a caller begins one, gets signs of life,
// progress and the outcome, attaches again by a key when it hears nothing, and cancels by that key.
//
// A request is delivered at most once: a connection that breaks takes requests and answers along. Repeat sends one again
// after 3 s without an answer. It is for requests that look something up, and for those with an id, which services carry
// out once. Both handlings may overlap; the log takes one of the two.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/reuse"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// version names the form of requests and replies, shown by `nats micro`.
	version = "1.0.0"
	// defaultConcurrency allows as many concurrent reads as the event log does: 16 streams, four readers each.
	defaultConcurrency = 64
	// waitingPerSlot bounds the requests that wait for a slot. If answers take 50 ms, the last of them is answered
	// within a second.
	waitingPerSlot = 16
	// handlerTimeout ends a handler whose caller set no deadline: longer than the event log's retries (20 s).
	handlerTimeout = 30 * time.Second
	// handlerLimit ends any handler: longer than tools may run.
	handlerLimit = time.Hour
)

// Config describes a server.
type Config struct {
	Service     id.Name
	Description string
	Concurrency int // concurrent requests per verb; default 64. 16 times as many may wait
	Logger      zerolog.Logger
	Directory   *directory.Directory  // answers wait until this copy includes the state that the sender has seen; nil: no wait
	Registry    prometheus.Registerer // nil: metrics are not exported
}

// Server answers the requests to a service. It is a lifecycle component; any number of replicas may run.
type Server struct {
	conn      *bus.Conn
	cfg       Config
	log       zerolog.Logger
	metrics   *metrics
	broken    error // the error of its construction, returned by Start
	endpoints []*endpoint
	others    []broadcast // for all replicas, not one of them

	requests *reuse.Goroutines

	kill context.Context //nolint:containedctx // ends at Stop: cancels handlers
	stop context.CancelCauseFunc
	quit context.Context //nolint:containedctx // ends at Drain or Stop: cancels a start
	end  context.CancelFunc

	mu        sync.Mutex
	state     state
	micro     micro.Service
	handled   sync.WaitGroup
	subs      []*nats.Subscription // of others, until the end of Stop
	closed    bool                 // no more followers may start
	followers sync.WaitGroup       // report on operations
}

// broadcast is a subject that all replicas listen on.
type broadcast struct {
	subject string
	handle  nats.MsgHandler
}

type state int

const (
	fresh state = iota
	running
	leaving // draining: refuses new requests
)

// errStopped is the cause of the end of handlers' contexts when the server stops.
var errStopped = errors.New("the service is stopping")

// NewServer returns a server without endpoints that is not started. The connection must outlive it.
func NewServer(c *bus.Conn, cfg Config) *Server {
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = defaultConcurrency
	}
	s := &Server{conn: c, cfg: cfg, log: cfg.Logger.With().Str("service", cfg.Service.String()).Logger()}
	s.metrics, s.broken = newMetrics(cfg.Registry, cfg.Service)
	s.kill, s.stop = context.WithCancelCause(context.Background())
	s.quit, s.end = context.WithCancel(s.kill)
	s.requests = reuse.New(s.quit)
	return s
}

// Name implements lifecycle.Component.
func (s *Server) Name() string { return s.cfg.Service.String() + " rpc" }

// Failed implements lifecycle.Component: a server ends only on request. The connection reconnects by itself.
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
		s.unsubscribe()
		return fmt.Errorf("offer the %s service on the bus: %w", s.cfg.Service, err)
	}
	s.state = running
	return nil
}

// offer subscribes, and waits until the bus knows the subscriptions.
func (s *Server) offer(ctx context.Context) error {
	for _, b := range s.others {
		sub, err := s.conn.NATS().Subscribe(b.subject, b.handle)
		if err != nil {
			return err
		}
		s.subs = append(s.subs, sub)
	}
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

// Drain accepts no more requests and waits for those that have arrived. Operations continue, with their followers.
func (s *Server) Drain(ctx context.Context) error {
	s.Leave()
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

// Stop ends the handlers' contexts and returns when they have returned and the followers of operations have the outcomes.
// The handlers' callers are told to try again.
func (s *Server) Stop() {
	s.stop(errStopped)
	s.Leave()
	s.handled.Wait()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.followers.Wait()
	s.unsubscribe()
}

// unsubscribe ends the subscriptions that outlast a drain.
func (s *Server) unsubscribe() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // fails if the connection is closed, which ends the subscription, too
	}
}

// follow reports on an operation in a goroutine, unless the server has stopped.
func (s *Server) follow(report func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.followers.Go(report)
	return true
}

// Leave accepts no more requests, without waiting for those that have arrived.
func (s *Server) Leave() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == running {
		s.hangUp()
	}
	s.state = leaving
}

// hangUp unsubscribes. A request that arrives before the bus processes that is answered with: ask another replica.
func (s *Server) hangUp() {
	if s.micro == nil {
		return
	}
	if err := s.micro.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.log.Debug().Err(err).Msg("failed to unsubscribe from NATS")
	}
}

// enter counts a request, unless the server is leaving.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == leaving {
		return false
	}
	s.handled.Add(1)
	return true
}

// reply is the outcome of a handler: the body of its answer, or, of an operation that has begun, what follows it.
type reply struct {
	body   []byte
	follow func()
}

// endpoint answers one verb.
type endpoint struct {
	s     *Server
	verb  id.Name
	label string
	call  func(context.Context, micro.Request) (reply, error)
	slots chan struct{}

	waiting  atomic.Int64 // requests that wait for a slot or are in progress
	requests atomic.Int64 // answered requests
	errors   atomic.Int64
	nanos    atomic.Int64
}

// Stats are shown by the statistics of NATS micro: its own count the time until a request is accepted, not until it
// is answered.
type Stats struct {
	Requests   int64 `json:"requests"` // answered
	Errors     int64 `json:"errors"`
	InProgress int64 `json:"in_progress"`
	AverageMS  int64 `json:"average_ms"`
}

func (s *Server) stats(of *micro.Endpoint) any {
	for _, e := range s.endpoints {
		if e.verb.String() != of.Name {
			continue
		}
		st := Stats{Requests: e.requests.Load(), Errors: e.errors.Load(), InProgress: e.waiting.Load()}
		st.AverageMS = time.Duration(e.nanos.Load() / max(st.Requests, 1)).Milliseconds()
		return st
	}
	return nil
}
