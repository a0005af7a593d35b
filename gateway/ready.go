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
	// readyTimeout bounds the check of the bus: probes give up after a few seconds.
	readyTimeout = 2 * time.Second
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
	return s.verify(ctx)
}

// verify checks the streams, unless a check has succeeded within verifyEvery.
func (s *Server) verify(ctx context.Context) *fault.Fault {
	s.verified.mu.Lock()
	defer s.verified.mu.Unlock()
	if time.Since(s.verified.at) < verifyEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
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
			Msg("wait for bus to be set up for this version")
		return fault.Newf(fault.BusUnavailable, "The message bus is not set up as this version needs it. See the server's log.")
	}
	s.verified.at = time.Now()
	return nil
}
