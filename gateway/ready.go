package gateway

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// readyTimeout bounds how long a probe waits for a check of the bus: probes give up after a few seconds.
	readyTimeout = 2 * time.Second
	// verifyTimeout bounds a check, which later probes may wait for: on a busy machine thirty requests take longer than
	// a probe waits.
	verifyTimeout = 10 * time.Second
	// verifyEvery spares the bus: a check requests each stream, and several probes come
	// about every second.
	verifyEvery = 30 * time.Second
)

// needed are the services without which no message of a client is answered.
var needed = []id.Name{command.Session, command.Pipeline, command.Worker, id.MustName("tools")}

// answerable reports whether all services run that an answer needs.
func (s *Server) answerable() bool {
	if s.dep.Directory == nil {
		return true
	}
	for _, name := range needed {
		if len(s.dep.Directory.Members(directory.WhatService, name)) == 0 {
			return false
		}
	}
	return true
}

// membersChanged settles the connections that wait for services. The directory calls it.
func (s *Server) membersChanged() {
	if !s.answerable() {
		return
	}
	for _, c := range s.open() {
		c.Settle()
	}
}

// unready returns why this gateway should get no new connections now, or nil.
func (s *Server) unready(ctx context.Context) *fault.Fault {
	switch {
	case s.isDraining():
		return fault.New(fault.Draining)
	case s.full():
		return fault.New(fault.Overloaded)
	case !s.dep.Conn.Up():
		return fault.New(fault.BusUnavailable)
	}
	if err := s.dep.Conn.Trouble(); err != nil {
		return fault.Newf(fault.BusUnavailable, "Messages cannot be accepted now: %v.", err)
	}
	return s.verify(ctx)
}

// verify waits for a check of the streams, unless one has succeeded within verifyEvery. A check goes on when its probe gives
// up, so that later probes get its result.
func (s *Server) verify(ctx context.Context) *fault.Fault {
	c := s.check() //nolint:contextcheck // It outlives its probe.
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	select {
	case <-c.done:
		return c.fault
	case <-ctx.Done():
		return fault.New(fault.BusUnavailable).Wrap(ctx.Err())
	}
}

// check returns the check in progress or a new one, and nil if one has succeeded within verifyEvery.
func (s *Server) check() *check {
	s.verified.mu.Lock()
	defer s.verified.mu.Unlock()
	if s.verified.running == nil {
		if time.Since(s.verified.at) < verifyEvery {
			return nil
		}
		c := &check{done: make(chan struct{})}
		if !s.async(func() { s.finish(c) }) {
			c.fault = fault.New(fault.Draining)
			close(c.done)
			return c
		}
		s.verified.running = c
	}
	return s.verified.running
}

// finish runs a check and publishes its result.
func (s *Server) finish(c *check) {
	c.fault = s.inspect()
	s.verified.mu.Lock()
	defer s.verified.mu.Unlock()
	s.verified.running = nil
	if c.fault == nil {
		s.verified.at = time.Now()
	}
	close(c.done)
}

// inspect compares the streams with what this version needs.
func (s *Server) inspect() *fault.Fault {
	ctx, cancel := context.WithTimeout(s.ctx, verifyTimeout)
	defer cancel()
	topology := s.dep.Topology
	if topology == (bus.Topology{}) {
		topology = bus.DefaultTopology()
	}
	drift, err := bus.Verify(ctx, s.dep.Conn, topology)
	switch {
	case err != nil:
		return fault.New(fault.BusUnavailable).Wrap(err)
	case len(drift) > 0:
		s.dep.Logger.Error().Str("drift", drift[0].String()).Int("more", len(drift)-1).
			Msg("waiting for NATS to be set up for this version")
		return fault.Newf(fault.BusUnavailable, "The message bus is not set up for this version. See the server's log.")
	}
	return nil
}
