package gateway

import (
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// step comes before a handler. It reports whether the request continues; it has been answered otherwise.
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
		ActiveConnections: s.conns.count(), Timestamp: orbit.Timestamp{Time: s.dep.Clock()},
	})
}

// readyz says whether this gateway should get new connections.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	arrival.Of(r).Probed()
	if f := s.ready.unready(r.Context()); f != nil {
		s.problem(w, f)
		return
	}
	s.answer(w, map[string]string{"status": "ready"})
}

// handshake turns the library's refusal of a handshake into a problem document.
type handshake struct {
	http.ResponseWriter
	answers *answers
	status  int // of the refusal; 0 = none
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
	h.answers.logUnsent(answer.Refusal(h.ResponseWriter, f, h.status))
	return len(p), nil
}

// Unwrap lets the library take the connection over.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }
