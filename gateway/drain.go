package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// drainPatience is the time that requests in progress have before their socket is sent
	// to another gateway. A request takes milliseconds, unless its service is down.
	drainPatience = time.Second
	// drainSaying is the time to tell the client about requests that were cut off.
	drainSaying = time.Second
)

// Drain refuses new sockets, asks every client to reconnect to another gateway, spread over
// Config.DrainSpread, and returns when all clients have left. It answers probes until then:
// /readyz says that the gateway is draining.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	lease := s.lease
	s.lease = nil
	s.mu.Unlock()
	s.leave(lease) //nolint:contextcheck // ending takes a context of its own
	if s.cells != nil {
		s.cells.Drain()
	}
	if err := s.sendAway(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.http.Shutdown(ctx), s.shutdownExtra(ctx)); err != nil {
		return fmt.Errorf("gateway: end HTTP: %w", err)
	}
	return nil
}

// sendAway closes the sockets one after the other and waits until all have ended.
func (s *Server) sendAway(ctx context.Context) error {
	all := s.open()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for i, c := range all {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("gateway: %d sockets left: %w", len(all)-i, ctx.Err())
		case <-s.ctx.Done():
			return nil
		}
		c.retire(fault.New(fault.Draining))
		pause.Reset(s.cfg.DrainSpread / time.Duration(len(all)))
	}
	for _, c := range all {
		select {
		case <-c.left():
		case <-ctx.Done():
			return fmt.Errorf("gateway: wait for sockets: %w", ctx.Err())
		}
	}
	return nil
}

// retire asks the client of a socket to reconnect, after the requests in progress. It cuts off
// long requests and asks the client to repeat them. It does not block.
func (c *conn) retire(why *fault.Fault) {
	if c.backlog.still() {
		c.End(why)
		return
	}
	c.s.async(func() {
		late := time.NewTimer(c.s.drainPatience)
		defer late.Stop()
		c.backlog.quiet(late.C)
		c.cut(fault.Newf(why.Code, "The gateway has not finished this before it had to close the connection. Reconnect, and send it again."))
		saying := time.NewTimer(drainSaying)
		defer saying.Stop()
		c.backlog.quiet(saying.C)
		c.End(why)
	})
}
