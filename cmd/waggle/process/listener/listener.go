// Package listener serves HTTP to programs of the installation: probes of a process without a gateway, and metrics and profiles
// for operators.
package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// headerTimeout is long enough for any probe, and ends slow-loris attacks soon.
const headerTimeout = 5 * time.Second

// Listener serves HTTP to programs of the installation.
type Listener struct {
	name   string
	addr   string
	kind   error // of errors of Start
	srv    *http.Server
	failed chan error
	serves sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	draining bool
	stopped  bool
}

func newListener(name, addr string, h http.Handler) *Listener {
	return &Listener{name: name, addr: addr, kind: errors.New(name), failed: make(chan error, 1), srv: &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}}
}

// Name implements lifecycle.Component.
func (h *Listener) Name() string { return h.name }

// Addr returns the address listened on, or nil before Start.
func (h *Listener) Addr() net.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener == nil {
		return nil
	}
	return h.listener.Addr()
}

// Start implements lifecycle.Component.
func (h *Listener) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.addr)
	if err != nil {
		return fmt.Errorf("%w: %w", h.kind, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return errors.Join(fmt.Errorf("%s: started after stop", h.name), l.Close())
	}
	h.listener = l
	h.serves.Go(func() {
		if err := h.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			h.failed <- err
		}
	})
	return nil
}

// Drain turns readiness off; the listener stays open until Stop, so that probes see the change.
func (h *Listener) Drain(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	return nil
}

// isDraining reports whether Drain was called.
func (h *Listener) isDraining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining
}

// Stop implements lifecycle.Component.
func (h *Listener) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	_ = h.srv.Close() // closes connections, too; its error is the listener's, which closes anyway
	h.serves.Wait()
}

// Failed implements lifecycle.Component.
func (h *Listener) Failed() <-chan error { return h.failed }
