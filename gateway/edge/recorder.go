package edge

import (
	"net/http"
	"strings"

	log "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Recorder records requests over HTTP. It is safe for concurrent use.
type Recorder struct {
	Log      *log.Writer   // nil = nothing is recorded
	Refusals *log.Gatherer // of strangers
	Auth     auth.Authenticator
}

// Handler records the calls of the API that change something or export a state, and those without valid credentials.
func (q Recorder) Handler(h http.Handler) http.Handler {
	if q.Log == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &status{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(seen, r)
		q.record(seen.code, r)
	})
}

// record is apart from its handler because a stream keeps the frames of all handlers, and that of this function is large.
func (q Recorder) record(code int, r *http.Request) {
	looks := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	failed := code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusTooManyRequests
	if looks && !failed && !exports(r.URL.Path) {
		return
	}
	rec := audit.Record{Verb: r.Method, Entity: clipped(r.URL.Path), Remote: q.Log.Remote(r.RemoteAddr)}
	if code >= http.StatusBadRequest {
		rec.Outcome, rec.Code = audit.Denied, http.StatusText(code)
	}
	switch code {
	case http.StatusUnauthorized:
		q.Refusals.Record(audit.AuthFailed, id.Tenant{}, rec)
		return
	case http.StatusTooManyRequests:
		q.Refusals.Record(audit.API, id.Tenant{}, rec)
		return
	}
	token, _, _ := auth.TokenFromRequest(r)
	p, err := q.Auth.Authenticate(r.Context(), token)
	if err == nil {
		rec.Principal = p.Subject
	}
	q.Log.Record(audit.API, p.Tenant, rec)
}

// exports reports whether a path of the API hands out the state of a session, or a log as a file.
func exports(path string) bool {
	return strings.HasSuffix(path, "/state") || strings.HasSuffix(path, "/export")
}

// status notes how a request was answered.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the writer.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
