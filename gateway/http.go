package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/agui"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/faultlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// step comes before a handler. It reports whether the request goes on; it has been answered otherwise.
type step func(w http.ResponseWriter, r *http.Request) bool

// passage is a handler of requests that have gone through the steps. Handlers that do nothing after those behind them are steps of one
// passage, because a stream keeps the frames of all that have called it: see events.serve.
type passage struct {
	steps []step
	to    http.Handler
}

// through returns a passage to h. Its steps come before those of h.
func through(h http.Handler, steps ...step) *passage {
	if p, ok := h.(*passage); ok {
		steps, h = append(steps, p.steps...), p.to
	}
	return &passage{steps, h}
}

// ServeHTTP implements http.Handler.
func (p *passage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, goes := range p.steps {
		if !goes(w, r) {
			return
		}
	}
	p.to.ServeHTTP(w, r)
}

// named refuses requests for host names that this gateway does not serve.
func (s *Server) named(w http.ResponseWriter, r *http.Request) bool {
	if !s.gate.Host(r.Host) {
		s.refuse(w, fault.New(fault.HostRefused))
		return false
	}
	return true
}

// bounded ends the reading of a body that is too long.
func (s *Server) bounded(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, s.cfg.ReadLimit)
	return true
}

// sameOrigin refuses calls from pages of foreign origins, even if browsers would hide the answer
// from them, and grants allowed pages access to the answer.
func (s *Server) sameOrigin(w http.ResponseWriter, r *http.Request) bool {
	origins, preflight := r.Header.Values("Origin"), r.Method == http.MethodOptions
	err := s.gate.Page(r)
	allowed := preflight && s.gate.Preflight(r) || api.IsDocumentation(r.URL.Path) && admission.Visit(r)
	if err != nil && !allowed {
		s.foreign.Refused(r)
		s.problem(w, s.asFault(err))
		return false
	}
	if len(origins) == 0 {
		return true
	}
	head := w.Header()
	head.Add("Vary", "Origin")
	head.Set("Access-Control-Allow-Origin", origins[0])
	head.Set("Access-Control-Expose-Headers", agui.HeaderThread+", Retry-After")
	if preflight {
		head.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, X-API-Key, traceparent")
		w.WriteHeader(http.StatusNoContent)
	}
	return !preflight
}

// paged returns the step that serves the pages for browsers.
func (s *Server) paged() step {
	if s.dep.Pages == nil {
		return func(http.ResponseWriter, *http.Request) bool { return true }
	}
	pages := s.limited(s.dep.Pages)
	return func(w http.ResponseWriter, r *http.Request) bool {
		if s.dep.Pages.Serves(r) {
			pages.ServeHTTP(w, r)
			return false
		}
		return true
	}
}

// limited bounds the requests of an address. Those of the documentation have no principal.
func (s *Server) limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := s.requests.Address(r.RemoteAddr)
		if err != nil {
			s.refuse(w, s.asFault(err))
			return
		}
		defer leave()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), limitKey{}, leave)))
	})
}

type limitKey struct{}

// unlimited: the request is a stream, which counts as a connection of its address instead.
func unlimited(r *http.Request) {
	if leave, ok := r.Context().Value(limitKey{}).(func()); ok {
		leave()
	}
}

// admitRequest bounds the requests of a principal. Those that change something count as messages
// of its quota.
func (s *Server) admitRequest(r *http.Request, p auth.Principal) (leave func(), err error) {
	if leave, err = s.requests.Principal(p, s.gate.Anonymous); err != nil {
		return nil, err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if _, err := s.dep.Quota.Allow(p.Tenant, p.Subject); err != nil {
			leave()
			return nil, err
		}
	}
	arrival.Of(r).Admitted()
	return leave, nil
}

// The paths of health: of ORBIT, and of the server of teams.
const (
	pathHealth     = "/health"
	pathTeamHealth = "/rest/health"
)

// health answers as the protocol of the path describes it.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == pathTeamHealth {
		s.answer(w, map[string]string{"status": "ok"})
		return
	}
	s.answer(w, orbit.Health{
		Status: orbit.HealthStatus, Service: orbit.HealthService,
		ActiveConnections: s.connections(), Timestamp: orbit.Timestamp{Time: s.dep.Clock()},
	})
}

// readyz says whether this gateway should get new connections.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	arrival.Of(r).Probed()
	if f := s.unready(r.Context()); f != nil {
		s.problem(w, f)
		return
	}
	s.answer(w, map[string]string{"status": "ready"})
}

func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	s.logUnsent(json.NewEncoder(w).Encode(v))
}

// problem answers with a fault.
func (s *Server) problem(w http.ResponseWriter, f *fault.Fault) {
	s.logUnsent(answer.Fault(w, f))
}

// logUnsent logs why a client does not have its answer.
func (s *Server) logUnsent(err error) {
	if err != nil {
		s.dep.Logger.Debug().Err(err).Msg("failed to write HTTP response")
	}
}

// handshake turns the library's refusal of a handshake into a problem document.
type handshake struct {
	http.ResponseWriter
	s      *Server
	status int // of the refusal; 0 = none
}

// WriteHeader keeps the status of a refusal until its text is known.
func (h *handshake) WriteHeader(status int) {
	if status < http.StatusBadRequest {
		h.ResponseWriter.WriteHeader(status)
		return
	}
	h.status = status
}

// Write takes the text of a refusal.
func (h *handshake) Write(p []byte) (int, error) {
	if h.status == 0 {
		return h.ResponseWriter.Write(p)
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(p)), "WebSocket protocol violation: ")
	f := fault.Newf(fault.InvalidField, "This is not a WebSocket handshake: %s. Connect with a WebSocket client.", text)
	if h.status >= http.StatusInternalServerError {
		f = fault.New(fault.Draining)
	}
	h.s.logUnsent(answer.Refusal(h.ResponseWriter, f, h.status))
	return len(p), nil
}

// Unwrap lets the library take the connection over.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// refuse counts a request that is refused with the fault, and answers it.
func (s *Server) refuse(w http.ResponseWriter, f *fault.Fault) {
	s.met.refused.WithLabelValues(string(f.Code)).Inc()
	s.problem(w, f)
}

// asFault returns the part of err that a client may see. The log has the rest.
func (s *Server) asFault(err error) *fault.Fault {
	return faultlog.Public(&s.dep.Logger, err, "request failed: internal error")
}
