package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

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

// readiness says whether this gateway should get new connections, and whether their messages are answered.
type readiness struct {
	conn      *bus.Conn
	directory *directory.Directory // nil = all services count as running
	topology  bus.Topology         // zero = bus.DefaultTopology
	logger    zerolog.Logger
	conns     *connections
	ctx       context.Context //nolint:containedctx // of the gateway: a check outlives its probe

	mu      sync.Mutex
	checked time.Time // the last check of the streams that succeeded
	running *check    // nil: none
}

// check is one check of the streams. Probes share it.
type check struct {
	done  chan struct{}
	fault *fault.Fault // after done
}

// answerable reports whether all services run that an answer needs.
func (d *readiness) answerable() bool {
	if d.directory == nil {
		return true
	}
	for _, name := range needed {
		if len(d.directory.Members(directory.WhatService, name)) == 0 {
			return false
		}
	}
	return true
}

// membersChanged settles the connections that wait for services. The directory calls it.
func (d *readiness) membersChanged() {
	if d.answerable() {
		d.conns.settle()
	}
}

// unready returns why this gateway should get no new connections now, or nil.
func (d *readiness) unready(ctx context.Context) *fault.Fault {
	switch {
	case d.conns.isDraining():
		return fault.New(fault.Draining)
	case d.conns.full():
		return fault.New(fault.Overloaded)
	case !d.conn.Up():
		return fault.New(fault.BusUnavailable)
	}
	if err := d.conn.Trouble(); err != nil {
		return fault.Newf(fault.BusUnavailable, "Messages cannot be accepted now: %v.", err)
	}
	return d.verify(ctx)
}

// verify waits for a check of the streams, unless one has succeeded within verifyEvery. A check continues when its probe gives
// up, so that later probes get its result.
func (d *readiness) verify(ctx context.Context) *fault.Fault {
	c := d.check() //nolint:contextcheck // It outlives its probe.
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
func (d *readiness) check() *check {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		if time.Since(d.checked) < verifyEvery {
			return nil
		}
		c := &check{done: make(chan struct{})}
		if !d.conns.async(func() { d.finish(c) }) {
			c.fault = fault.New(fault.Draining)
			close(c.done)
			return c
		}
		d.running = c
	}
	return d.running
}

// finish runs a check and publishes its result.
func (d *readiness) finish(c *check) {
	c.fault = d.inspect()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = nil
	if c.fault == nil {
		d.checked = time.Now()
	}
	close(c.done)
}

// inspect compares the streams with what this version needs.
func (d *readiness) inspect() *fault.Fault {
	ctx, cancel := context.WithTimeout(d.ctx, verifyTimeout)
	defer cancel()
	topology := d.topology
	if topology == (bus.Topology{}) {
		topology = bus.DefaultTopology()
	}
	drift, err := bus.Verify(ctx, d.conn, topology)
	switch {
	case err != nil:
		return fault.New(fault.BusUnavailable).Wrap(err)
	case len(drift) > 0:
		d.logger.Error().Str("drift", drift[0].String()).Int("more", len(drift)-1).
			Msg("waiting for NATS to be set up for this version")
		return fault.Newf(fault.BusUnavailable, "The message bus is not set up for this version. See the server's log.")
	}
	return nil
}
