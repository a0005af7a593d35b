package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// drainPatience is how long a socket that is to come back elsewhere may go on with
	// what it is doing: a request takes milliseconds, unless who answers it is gone.
	drainPatience = time.Second
	// drainSaying bounds how long its client is then told of what was not done.
	drainSaying = time.Second
)

// Drain takes no new sockets, asks every client to come back elsewhere, spread over
// Config.DrainSpread, and returns when they have gone. Probes are answered until
// then: /readyz says that the gateway is draining.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	lease := s.lease
	s.lease = nil
	s.mu.Unlock()
	s.leave(lease) //nolint:contextcheck // ending takes a context of its own
	if err := s.sendAway(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.http.Shutdown(ctx), s.shutdownExtra(ctx)); err != nil {
		return fmt.Errorf("gateway: end HTTP: %w", err)
	}
	return nil
}

// sendAway closes the sockets one after the other and waits until they are gone.
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
		c.retire()
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

// retire sends the client of a socket elsewhere, after what is being done for it. What
// takes long is ended, and its client told to ask again. It does not block.
func (c *conn) retire() {
	if c.backlog.still() {
		c.End(fault.New(fault.Draining))
		return
	}
	c.s.async(func() {
		late := time.NewTimer(drainPatience)
		defer late.Stop()
		c.backlog.quiet(late.C)
		c.cut(fault.Newf(fault.Draining, "This gateway is restarting and has not finished this. Reconnect, and send it again."))
		saying := time.NewTimer(drainSaying)
		defer saying.Stop()
		c.backlog.quiet(saying.C)
		c.End(fault.New(fault.Draining))
	})
}
