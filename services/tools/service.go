package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools/fsserver"
)

// leaveTimeout bounds the farewell to the directory: its lease runs out anyway.
const leaveTimeout = 2 * time.Second

// Deps is what a service works with.
type Deps struct {
	Conn      *bus.Conn            // nil: calls come from this process only
	Directory *directory.Directory // nil: the service is not announced and knows no services of the swarm
	Logger    zerolog.Logger
	Registry  prometheus.Registerer // nil: metrics are kept but not shown
}

// Service runs the tool servers and calls their tools, for this process (it is a
// Toolbox itself) and for the bus. It is a lifecycle.Component.
type Service struct {
	cfg     Config
	deps    Deps
	log     zerolog.Logger
	metrics *metrics
	calls   *calls
	servers []*server
	builtin *server // nil if there is none
	swarm   *swarm  // nil without a directory on the bus

	life    context.Context //nolint:containedctx // From New to Stop.
	end     context.CancelFunc
	started chan struct{} // closed when Start has returned
	beat    time.Duration
	running sync.WaitGroup

	mu      sync.Mutex
	state   state
	states  map[string]string // of the servers, by their names
	desk    *desk             // answers the bus; nil without one
	lease   *directory.Lease  // nil without a directory
	stopped sync.Once
}

type state int

const (
	fresh state = iota
	running
	over
)

var (
	errStarted         = errors.New("the tool service has been started or stopped before")
	_          Toolbox = (*Service)(nil)
)

// New checks the configuration; errors name the option. Nothing runs before Start.
func New(cfg Config, deps Deps) (*Service, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(deps.Registry)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	s := &Service{
		cfg: cfg, deps: deps, log: deps.Logger, metrics: m,
		states: map[string]string{}, calls: newCalls(cfg.MaxCalls, time.Now), started: make(chan struct{}), beat: beat,
	}
	s.life, s.end = context.WithCancel(context.Background())
	if deps.Conn != nil && deps.Directory != nil {
		s.swarm = newSwarm(cfg, deps, m)
	}
	for _, c := range cfg.Servers {
		dial := dialHTTP(&c)
		if len(c.Command) > 0 {
			dial = dialProgram(&c, s.log.With().Str("server", c.Name).Logger())
		}
		s.servers = append(s.servers, newServer(c, dial, s.log, s.told(c.Name)))
	}
	if cfg.Builtin {
		c := ServerConfig{Name: builtinName, Timeout: defaultTimeout, OutputCap: defaultOutputCap}
		s.builtin = newServer(c, nil, s.log, s.told(c.Name))
		s.servers = append(s.servers, s.builtin)
	}
	return s, nil
}

// Name returns "tools".
func (s *Service) Name() string { return ServiceName.String() }

// Failed returns nil: a server that fails is started again, the service goes on.
func (s *Service) Failed() <-chan error { return nil }

// Start opens the workspace, begins to connect the servers and answers the bus. It
// returns when the built-in server is ready; the others follow when they can.
func (s *Service) Start(ctx context.Context) error {
	s.mu.Lock()
	if s.state != fresh {
		s.mu.Unlock()
		return errStarted
	}
	s.state = running
	s.mu.Unlock()
	err := s.start(ctx)
	close(s.started)
	if err != nil {
		s.Stop() //nolint:contextcheck // What has begun is ended even if ctx is over.
		return fmt.Errorf("tools: %w", err)
	}
	return nil
}

func (s *Service) start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)() //nolint:contextcheck // Stop ends a start that is on.
	if s.builtin != nil {
		folders, err := fsserver.Open(s.cfg.Workspace)
		if err != nil {
			return err
		}
		s.builtin.dial = dialBuiltin(folders)
	}
	for _, srv := range s.servers {
		s.running.Go(func() { srv.run(s.life) })
	}
	if s.builtin != nil {
		if err := s.builtin.ready(ctx); err != nil {
			return fmt.Errorf("start the workspace server: %w", err)
		}
	}
	if s.swarm != nil {
		s.swarm.follow()
	}
	if s.deps.Conn != nil {
		d, err := openDesk(ctx, s, s.deps.Conn)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.desk = d
		s.mu.Unlock()
	}
	return s.join(ctx)
}

// join announces the service in the directory.
func (s *Service) join(ctx context.Context) error {
	if s.deps.Directory == nil || s.deps.Conn == nil {
		return ctx.Err()
	}
	instance, err := id.ParseName(s.deps.Conn.Instance())
	if err != nil {
		return err
	}
	s.mu.Lock()
	data, err := s.card()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	lease, err := s.deps.Directory.Join(ctx, directory.Member{
		What: directory.WhatService, Name: ServiceName, Instance: instance, Data: data, Started: time.Now(),
	})
	if err != nil {
		return fmt.Errorf("join the directory: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = lease
	return s.show() // what has changed meanwhile
}

// Drain takes no more calls and waits for those that run. Cancelling still works.
func (s *Service) Drain(ctx context.Context) error {
	s.mu.Lock()
	began := s.state == running
	s.mu.Unlock()
	if !began {
		return nil
	}
	select {
	case <-s.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.leave(ctx)
	idle := s.calls.close()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave makes callers look for another instance.
func (s *Service) leave(ctx context.Context) {
	s.mu.Lock()
	lease, desk := s.lease, s.desk
	s.lease = nil
	s.mu.Unlock()
	if lease != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		if err := lease.Leave(ctx); err != nil {
			s.log.Debug().Err(err).Msg("leaving the directory")
		}
	}
	if desk != nil {
		desk.refuse()
	}
}

// Stop ends the servers and with them the calls that run, whose outcome is then
// unknown to their callers.
func (s *Service) Stop() {
	s.mu.Lock()
	began := s.state == running
	s.state = over
	s.mu.Unlock()
	s.stopped.Do(func() {
		s.calls.cancel(errStopping)
		s.end()
		if began {
			<-s.started
		}
		s.leave(context.Background())
		<-s.calls.close()
		s.running.Wait()
		for _, srv := range s.servers {
			srv.closing.Wait()
		}
		if s.swarm != nil {
			s.swarm.end()
		}
		s.mu.Lock()
		desk := s.desk
		s.mu.Unlock()
		if desk != nil {
			desk.close()
		}
	})
}

// Call runs a tool. See Caller.
func (s *Service) Call(ctx context.Context, call Call) (Result, error) {
	return s.CallWith(ctx, call, nil)
}

// CallWith runs a tool and tells of its notifications. See Toolbox.
func (s *Service) CallWith(ctx context.Context, call Call, told func(Notification)) (Result, error) {
	r, heard, err := s.begin(ctx, call, told != nil)
	if err != nil {
		return Result{}, err
	}
	if told != nil {
		defer heard.stop()
		defer empty(heard.notes, told)
	}
	for done := ctx.Done(); ; {
		select {
		case n := <-heard.notes:
			told(n)
		case <-r.done:
			return r.outcome()
		case <-done:
			done = nil
			if !s.calls.leave(r) {
				return Result{}, fault.New(fault.ToolCancelled) // Another caller wants it: it goes on.
			}
		}
	}
}

// ear hears the notifications of a run; the zero value hears none.
type ear struct {
	notes <-chan Notification
	stop  func()
}

// begin returns the run of a call, started if it is new, and, if wanted, an ear for
// its notifications.
func (s *Service) begin(ctx context.Context, call Call, listen bool) (*run, ear, error) {
	s.mu.Lock()
	ready := s.state == running
	s.mu.Unlock()
	if !ready {
		return nil, ear{}, fault.New(fault.ToolsDown)
	}
	r, isNew, err := s.calls.begin(ctx, call)
	if err != nil {
		return nil, ear{}, err
	}
	var e ear
	if listen {
		e.notes, e.stop = r.notes.listen()
	}
	if isNew {
		go s.execute(r, call)
	}
	return r, e, nil
}

// serverOf returns the server that an offered name belongs to, or nil.
func (s *Service) serverOf(tenant id.Tenant, tool string) *server {
	for _, srv := range s.servers {
		if belongsTo(tool, srv.cfg.Name) && srv.cfg.visible(tenant) {
			return srv
		}
	}
	return nil
}
