package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
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
		c.end(fault.New(fault.Draining))
		pause.Reset(s.cfg.DrainSpread / time.Duration(len(all)))
	}
	for _, c := range all {
		select {
		case <-c.gone:
		case <-ctx.Done():
			return fmt.Errorf("gateway: wait for sockets: %w", ctx.Err())
		}
	}
	return nil
}
