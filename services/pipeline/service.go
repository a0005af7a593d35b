package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// Service handles the commands about runs, those of sessions or those of the members
// of teams. It is a lifecycle component; any number of replicas may run.
type Service struct {
	*ledger.Service[conversation.State, env]
	rules conversation.Rules
	now   func() time.Time
	deps  ledger.Deps
	name  id.Name // whose commands it handles
	kind  id.Kind // of the logs
}

// env is what the decision about a command depends on besides the log.
type env struct {
	now   time.Time
	rules conversation.Rules
	model string // the planner, as far as it is certain before a worker has claimed the planning
}

// ref names a job of a log of this service.
func (s *Service) ref(w *conversation.Job) cmd.JobRef {
	ref := cmd.JobRef{RunID: w.RunID, JobID: w.Part.JobID}
	if s.kind != id.KindSession {
		ref.Kind = s.kind
	}
	return ref
}

func (s *Service) send(ctx context.Context, c cmd.Command, service, verb id.Name, commandID string, data any) error {
	return s.sendTo(ctx, c.Tenant, c.Key, service, verb, commandID, data)
}

func (s *Service) sendTo(ctx context.Context, tenant id.Tenant, key id.Entity, service, verb id.Name, commandID string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s: %w", verb, err)
	}
	return s.Send(ctx, cmd.Command{ID: commandID, Service: service, Verb: verb, Tenant: tenant, Key: key, Data: raw})
}
