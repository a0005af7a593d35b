package service

import (
	"context"
	"fmt"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/turn"
	"github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/swarm"
	"github.com/waggle-dev/waggle/services/tools/workspace"
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
	if deps.Now == nil {
		deps.Now = time.Now
	}
	s := &Service{
		cfg: cfg, deps: deps, log: deps.Logger, metrics: m,
		states: map[string]string{}, calls: calls.New(cfg.MaxCalls, cfg.MaxTenantCalls, time.Now), started: make(chan struct{}),
	}
	s.life, s.end = context.WithCancel(context.Background())
	turns := turn.New(turn.Share())
	if deps.Conn != nil && deps.Directory != nil {
		reserved := make([]string, 0, len(cfg.Servers))
		for _, c := range cfg.Servers {
			reserved = append(reserved, c.Name)
		}
		s.swarm = swarm.New(swarm.Config{
			Conn: deps.Conn, Directory: deps.Directory, Logger: deps.Logger, Now: deps.Now, MaxCalls: cfg.MaxTenantCalls, Turns: turns,
			Reserved: reserved, Services: cfg.Services, Missed: m.missed.Inc, Waits: cfg.Waits, Rules: cfg.rulesOf,
		})
	}
	for _, c := range cfg.Servers {
		s.servers = append(s.servers, mcp.New(c, mcp.Dial(c, s.log), s.log, s.told(c.Name)).Take(turns))
	}
	if cfg.Builtin {
		rules := cfg.BuiltinRules
		rules.Hints = true // they are Waggle's own
		c := mcp.Config{Name: tools.BuiltinServer, Timeout: bound.Timeout, OutputCap: bound.Output, TellTenant: true, Rules: rules}
		s.builtin = mcp.New(c, mcp.InProcess(func() *mcpsdk.Server { return s.files }), s.log, s.told(c.Name)).Take(turns)
		s.servers = append(s.servers, s.builtin)
	}
	return s, nil
}

// Name returns "tools".
func (s *Service) Name() string { return tools.ServiceName.String() }

// Failed returns nil: the service restarts a failed server and continues.
func (s *Service) Failed() <-chan error { return nil }

// Start opens the workspace, begins to connect the servers and answers the bus. It returns when the built-in server is
// ready and the others have had Config.FirstMaxWait; those that need longer follow when they can.
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
		folders, err := workspace.Open(s.cfg.Workspace)
		if err != nil {
			return err
		}
		folders.Limit(s.cfg.Quota)
		s.files = workspace.New(folders)
	}
	for _, srv := range s.servers {
		s.running.Go(func() { srv.Run(s.life) })
	}
	if s.builtin != nil {
		if err := s.builtin.Ready(ctx); err != nil {
			return fmt.Errorf("start the workspace server: %w", err)
		}
	}
	s.first(ctx)
	if s.swarm != nil {
		s.swarm.Follow()
	}
	if s.deps.Conn != nil {
		server := remote.NewServer(s, remote.Config{
			Conn: s.deps.Conn, Directory: s.deps.Directory, Logger: s.log, MaxCalls: s.cfg.MaxCalls,
		})
		if err := server.Start(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		s.rpc = server
		s.mu.Unlock()
	}
	return s.join(ctx)
}

// first waits for the first attempt to connect each server.
func (s *Service) first(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.FirstMaxWait)
	defer cancel()
	for _, srv := range s.servers {
		if err := srv.Tried(ctx); err != nil {
			return // the time is over
		}
	}
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
		What: directory.WhatService, Name: tools.ServiceName, Instance: instance, Data: data, Started: time.Now(),
	})
	if err != nil {
		return fmt.Errorf("join the directory: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease, s.shown = lease, data
	return s.show() // with the changes since the start of join
}

// Drain accepts no more calls and waits for active ones. Cancelling still works.
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
	idle := s.calls.Close()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave makes callers choose another instance.
func (s *Service) leave(ctx context.Context) {
	s.mu.Lock()
	lease, server := s.lease, s.rpc
	s.lease = nil
	s.mu.Unlock()
	if lease != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		if err := lease.Leave(ctx); err != nil {
			s.log.Debug().Err(err).Msg("failed to leave directory")
		}
	}
	if server != nil {
		server.Leave()
	}
}

// Stop ends the servers and with them the active calls, whose callers then get an unknown outcome.
func (s *Service) Stop() {
	s.mu.Lock()
	began := s.state == running
	s.state = over
	s.mu.Unlock()
	s.stopped.Do(func() {
		s.calls.Cancel(calls.ErrStopping)
		s.end()
		if began {
			<-s.started
		}
		s.leave(context.Background())
		<-s.calls.Close()
		s.running.Wait()
		for _, srv := range s.servers {
			srv.Wait()
		}
		if s.swarm != nil {
			s.swarm.Close()
		}
		s.mu.Lock()
		server := s.rpc
		s.mu.Unlock()
		if server != nil {
			server.Stop()
		}
	})
}

// Call runs a tool. See tools.Caller.
func (s *Service) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	return s.CallWith(ctx, call, nil)
}

// CallWith runs a tool and passes on its notifications. See tools.Toolbox.
func (s *Service) CallWith(ctx context.Context, call tools.Call, told func(tools.Notification)) (tools.Result, error) {
	r, heard, err := s.Begin(ctx, call, told != nil)
	if err != nil {
		return tools.Result{}, err
	}
	if told != nil {
		defer heard.Stop()
		defer heard.Rest(told)
	}
	for done := ctx.Done(); ; {
		select {
		case n := <-heard.C:
			told(n)
		case <-r.Done():
			return r.Outcome()
		case <-done:
			done = nil
			if !s.calls.Leave(r) {
				return tools.Result{}, fault.New(fault.ToolCancelled) // Another caller waits for it: it continues.
			}
		}
	}
}

// Begin implements remote.Host.
func (s *Service) Begin(ctx context.Context, call tools.Call, listen bool) (*calls.Run, calls.Listener, error) {
	s.mu.Lock()
	ready := s.state == running
	s.mu.Unlock()
	if !ready {
		return nil, calls.Listener{}, fault.New(fault.ToolsDown)
	}
	r, isNew, err := s.calls.Begin(ctx, call)
	if err != nil {
		return nil, calls.Listener{}, err
	}
	var e calls.Listener
	if listen {
		e = r.Listen()
	}
	if isNew {
		go s.execute(r, call) //nolint:contextcheck // A run has a context of its own: it outlives the caller.
	}
	return r, e, nil
}
