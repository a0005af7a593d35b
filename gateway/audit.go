package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxAuditText bounds the text of a record that a client has chosen: a path.
const maxAuditText = 256

// quiet are the commands that the audit log leaves out: acknowledgements and reports of a
// task's progress.
var quiet = []id.Name{command.Ack, command.AckClient, command.ReportTask, command.NotifyTask}

// by fills in the principal and the connection of a record.
func (c *conn) by(r audit.Record) (id.Tenant, audit.Record) {
	p := c.Principal()
	r.Principal, r.Remote, r.Connection, r.Dialect = p.Subject, c.remote, c.ref, c.Protocol()
	return p.Tenant, r
}

// Record implements binding.Reporter.
func (c *conn) Record(action id.Name, r audit.Record) {
	tenant, r := c.by(r)
	c.s.dep.Audit.Record(action, tenant, r)
}

// accepted records an open socket and its principal.
func (c *conn) accepted() {
	r := audit.Record{}
	for _, role := range c.Principal().Roles {
		r.Roles = append(r.Roles, string(role))
	}
	c.Record(audit.Connected, r)
}

// turnedAway records why a socket was refused, before or after its handshake.
func (c *conn) turnedAway(f *fault.Fault) {
	action := audit.Refused
	if f.Code == fault.Unauthenticated || f.Code == fault.Expired {
		action = audit.AuthFailed
	}
	tenant, r := c.by(audit.Record{Outcome: audit.Denied, Code: string(f.Code)})
	c.s.refusals.Record(action, tenant, r)
}

// ended records the end of a socket that was accepted.
func (c *conn) ended() {
	if c.identified() {
		c.Record(audit.Closed, audit.Record{CloseCode: c.CloseCode(), DurationMS: c.s.dep.Clock().Sub(c.born).Milliseconds()})
	}
}

// sent records a command that was accepted.
func (c *conn) sent(cmd command.Command) {
	if action, r, ok := recordOf(cmd); ok {
		c.Record(action, r)
	}
}

// recordOf returns the audit record of a command that was accepted, unless it is not recorded.
func recordOf(cmd command.Command) (action id.Name, r audit.Record, ok bool) {
	if slices.Contains(quiet, cmd.Verb) {
		return action, r, false
	}
	r = audit.Record{
		Service: cmd.Service.String(), Verb: cmd.Verb.String(), Entity: cmd.Key.String(), Command: cmd.ID,
	}
	if cmd.Verb == command.CallTool {
		var call command.ToolRequest
		if cmd.Decode(&call) == nil {
			r.Server, r.Tool = clipped(call.Server), clipped(call.Tool)
		}
	}
	if cmd.Verb != command.Answer {
		return audit.Command, r, true
	}
	var d command.AnswerQuestion
	if cmd.Decode(&d) == nil {
		r.Input, r.Outcome = d.InputID, audit.Reject
		if r.Input == "" {
			r.Input = d.CallID
		}
		if d.Approved {
			r.Outcome = audit.Approve
		}
	}
	return audit.Decided, r, true
}

// within applies the quotas of messages per second. By the policy it either delays the client's
// messages or refuses this one with a fault.
func (c *conn) within() bool {
	p := c.Principal()
	for {
		wait, err := c.s.dep.Quota.Allow(p.Tenant, p.Subject)
		if err == nil {
			return true
		}
		if !c.policy.Slows {
			c.Tell(c.s.asFault(err))
			return false
		}
		select {
		case <-time.After(wait):
		case <-c.Done():
			return false
		}
	}
}

// audited records the calls of the API that change something or export a state, and those
// without valid credentials.
func (s *Server) audited(h http.Handler) http.Handler {
	if s.dep.Audit == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &status{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(seen, r)
		looks := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		failed := seen.code == http.StatusUnauthorized || seen.code == http.StatusForbidden || seen.code == http.StatusTooManyRequests
		if looks && !failed && !exports(r.URL.Path) {
			return
		}
		rec := audit.Record{Verb: r.Method, Entity: clipped(r.URL.Path), Remote: s.dep.Audit.Remote(r.RemoteAddr)}
		if seen.code >= http.StatusBadRequest {
			rec.Outcome, rec.Code = audit.Denied, http.StatusText(seen.code)
		}
		switch seen.code {
		case http.StatusUnauthorized:
			s.refusals.Record(audit.AuthFailed, id.Tenant{}, rec)
			return
		case http.StatusTooManyRequests:
			s.refusals.Record(audit.API, id.Tenant{}, rec)
			return
		}
		token, _, _ := auth.TokenFromRequest(r)
		p, err := s.dep.Auth.Authenticate(r.Context(), token)
		if err == nil {
			rec.Principal = p.Subject
		}
		s.dep.Audit.Record(audit.API, p.Tenant, rec)
	})
}

// exports reports whether a path of the API hands out the state of a session, or a log as a file.
func exports(path string) bool {
	return strings.HasSuffix(path, "/state") || strings.HasSuffix(path, "/export")
}

func clipped(s string) string { return s[:min(len(s), maxAuditText)] }

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
