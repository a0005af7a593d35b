package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// readyTimeout bounds the look at the bus: probes give up after a few seconds.
const readyTimeout = 2 * time.Second

// routes returns everything the gateway serves. Requests for names that are not
// served here are refused before anything else looks at them.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, d := range s.dep.Dialects {
		mux.HandleFunc("GET "+path, s.accept(d))
	}
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, map[string]string{"status": "alive"}) })
	mux.HandleFunc("GET /readyz", s.readyz)
	if s.dep.Registry != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.dep.Registry, promhttp.HandlerOpts{Registry: s.dep.Registry}))
	}
	if s.dep.Mount != nil {
		s.dep.Mount(mux)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.problem(w, fault.New(fault.NotFound)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hostAllowed(r.Host) {
			s.problem(w, fault.New(fault.HostRefused))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// health answers as the ORBIT protocol describes it.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, orbit.Health{
		Status: orbit.HealthStatus, Service: orbit.HealthService,
		ActiveConnections: s.connections(), Timestamp: orbit.Timestamp{Time: s.dep.Clock()},
	})
}

// readyz says whether this gateway should get new connections.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if f := s.unready(r.Context()); f != nil {
		s.problem(w, f)
		return
	}
	s.answer(w, map[string]string{"status": "ready"})
}

func (s *Server) unready(ctx context.Context) *fault.Fault {
	switch {
	case s.draining.Load():
		return fault.New(fault.Draining)
	case s.connections() >= s.cfg.MaxConnections:
		return fault.New(fault.Overloaded)
	case !s.dep.Conn.Up():
		return fault.New(fault.BusUnavailable)
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
		s.dep.Logger.Error().Str("drift", drift[0].String()).Msg("not ready: the bus is not set up as this version needs it")
		return fault.New(fault.BusUnavailable)
	}
	return nil
}

func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	s.write(w, v)
}

// problem answers with a problem document (RFC 9457).
func (s *Server) problem(w http.ResponseWriter, f *fault.Fault) {
	e := fault.Lookup(f.Code)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(e.Status)
	s.write(w, map[string]any{"type": "about:blank", "title": string(f.Code), "status": e.Status, "detail": f.Public()})
}

func (s *Server) write(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.dep.Logger.Debug().Err(err).Msg("an answer could not be written")
	}
}
