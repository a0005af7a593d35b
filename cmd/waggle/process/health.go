package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// headerTimeout is long enough for any probe, and ends slow-loris attacks soon.
const headerTimeout = 5 * time.Second

// health answers probes and metrics for processes without a gateway.
type health struct {
	addr   string
	srv    *http.Server
	failed chan error
	serves sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	draining bool
	stopped  bool
}

func newHealth(addr string, ready func() error, g prometheus.Gatherer) *health {
	h := &health{addr: addr, failed: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { h.readyz(w, ready()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	h.srv = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	return h
}

func (h *health) readyz(w http.ResponseWriter, err error) {
	h.mu.Lock()
	if h.draining {
		err = errors.New("draining")
	}
	h.mu.Unlock()
	if err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}

// Name implements lifecycle.Component.
func (h *health) Name() string { return "health" }

// Addr returns the address listened on, or nil before Start.
func (h *health) Addr() net.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener == nil {
		return nil
	}
	return h.listener.Addr()
}

// Start implements lifecycle.Component.
func (h *health) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.addr)
	if err != nil {
		return fmt.Errorf("addr: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return errors.Join(errors.New("health: started after stop"), l.Close())
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
func (h *health) Drain(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	return nil
}

// Stop implements lifecycle.Component.
func (h *health) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	_ = h.srv.Close() // closes connections, too; its error is the listener's, which closes anyway
	h.serves.Wait()
}

// Failed implements lifecycle.Component.
func (h *health) Failed() <-chan error { return h.failed }
