package gateway

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/binding/outcome"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// protocolAPI is the name of the HTTP API in the audit log, and the dialect of sessions that it opens.
const protocolAPI = "api"

// actor carries out the requests of the HTTP API that wait for an outcome.
type actor struct {
	s        *Server
	outcomes *outcome.Outcomes
}

var _ api.Actor = actor{}

// Act implements api.Actor.
func (a actor) Act(ctx context.Context, p auth.Principal, log subject.Log, c command.Command, is func(event.Event) bool) (event.Event, error) {
	e, err := a.outcomes.Of(ctx, a.client(p), log, c, is)
	if r, ok := errors.AsType[outcome.Refusal](err); ok {
		members := map[string]any{}
		for name, v := range map[string]string{
			"input_id": r.Data.InputID, "answered_by": r.Data.AnsweredBy, "answered_on": r.Data.AnsweredOn, "decision": r.Data.Decision,
		} {
			if v != "" {
				members[name] = v
			}
		}
		return e, respond.Detailed{Fault: r.Fault, Members: members}
	}
	return e, err
}

// Open implements api.Actor.
func (a actor) Open(ctx context.Context, p auth.Principal, log subject.Log) error {
	return a.outcomes.Open(ctx, a.client(p), log, protocolAPI)
}

// Name implements api.Actor.
func (actor) Name(p auth.Principal, wishes event.Preferences) (id.Entity, error) {
	return outcome.Name(p, wishes)
}

func (a actor) client(p auth.Principal) outcome.Client {
	return requester{a.s, p, func(action id.Name, rec audit.Record) {
		rec.Principal, rec.Dialect = p.Subject, protocolAPI
		a.s.dep.Audit.Record(action, p.Tenant, rec)
	}}
}
