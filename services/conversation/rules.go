package conversation

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Rules are the settings that decisions depend on.
type Rules struct {
	TTL            time.Duration // how long a session outlives its last event
	ConfirmPlan    bool          // ask before a plan is carried out, unless session or message say otherwise
	ConfirmTimeout time.Duration // how long a question stays open
	OnBusy         string        // reject, enqueue, interrupt, unless session or message say otherwise
	MaxConcurrent  int           // steps of a run at once
	StepTimeout    time.Duration // of one attempt at a step, from its first claim
	Tries          int           // at a plan, a step or an aggregate
	Replans        int           // further attempts after an invalid plan
	Backoff        time.Duration // before the second try; doubled before each further one
	MaxWait        time.Duration // how long the requests of a run to the model may fail one after the other; 0 = for ever

	Access access.Policy // to sessions and their questions

	// Fits returns why the arguments do not fit the JSON Schema of a tool; nil: they do. Without it, people may not change arguments.
	Fits func(schema, arguments json.RawMessage) *fault.Fault

	Barred *fault.Fault // why the tenant may not use the model that would answer; nil: it may

	Budget  event.Budget            // limits of a run, unless it sets lower ones
	Budgets map[string]event.Budget // the same of tenants that have their own
}

// withBudget returns the rules for a command: a tenant may have a budget of its own.
func (r Rules) withBudget(c command.Command) Rules {
	if b, ok := r.Budgets[c.Tenant.String()]; ok {
		r.Budget = b
	}
	return r
}

// budget is the budget of a run that is about to start; nil = unlimited.
func (r Rules) budget(spec event.RunSpec) *event.Budget {
	b := r.Budget
	if spec.Budget != nil {
		b = spec.Budget.Within(r.Budget)
	}
	if !b.Bounds() {
		return nil
	}
	return &b
}

// concurrent returns how many steps of a run with the spec are solved at once.
func (r Rules) concurrent(spec event.RunSpec) int {
	if spec.MaxConcurrent > 0 {
		return min(spec.MaxConcurrent, r.MaxConcurrent)
	}
	return r.MaxConcurrent
}
