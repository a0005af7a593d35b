package listener

import (
	"errors"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/internal/auth"
)

// ErrTelemetry says which listener does not start.
var ErrTelemetry = errors.New("telemetry")

// NewTelemetry returns the internal listener: metrics and profiles, for operators and never for clients of the gateway. The
// command line of the process is not served.
func NewTelemetry(addr string, g prometheus.Gatherer) *Listener {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	h := newListener("telemetry", addr, noPages(addr, mux))
	h.kind = ErrTelemetry
	return h
}

// noPages refuses requests of web pages: a page of another address could neither read an answer nor should it start a
// profile. On a loopback address it refuses names that were rebound to it.
func noPages(addr string, h http.Handler) http.Handler {
	names := admission.Names{Anonymous: true, Loopback: auth.RequireLoopback(addr) == nil}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if names.Page(r) != nil || names.Loopback && !names.Host(r.Host) {
			http.Error(w, "only for programs", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
