// Package quota limits the resources of tenants and principals over all processes of an installation: connections,
// messages, sessions, tasks and teams, and by the day tokens, cost, tool calls and time.
//
// A ledger in a KV bucket stores the holdings: one key for each holder, whose value is the amount of the holder. A
// holder writes its own keys only, so repeated writes do not count twice. A holder that wants one more writes its
// claim first and then reads the total: the writes of a bucket have one order, so of two claims on the last one
// exactly the second sees the first. Near the limit two concurrent claims may both be refused, but never both
// admitted.
//
// Holdings end with their holders: connections of a gateway count as long as the directory lists it (at most 30 s
// after a kill), daily amounts until their day has passed, and the holding of an entity until its log has ended,
// which a sweep checks at intervals. So no crash leaves a wrong count for ever.
//
// Every installation has limits by default (cmd/waggle/config): without them a program that has run away fills the disk or
// empties an account at a provider. Children of a task count in the outermost task until its end, also those that have
// ended, so that a loop of short children stops. The bytes of a workspace are measured before a write, and the walk takes a
// twentieth of the time at most.
package quota

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// None as a limit of an override removes the limit, whatever the default says.
const None = -1

// Consequences of a daily limit for a run.
const (
	Stop = event.BudgetStop // the run fails with QUOTA_EXCEEDED
	Ask  = event.BudgetAsk  // people decide whether it may continue, up to the same amount once more
)

// Limits bound a tenant or a principal. A zero field means unlimited.
type Limits struct {
	Connections int64   // open at once
	Messages    float64 // a second
	Sessions    int64   // open at once
	Tasks       int64   // of the swarm, open at once
	Teams       int64   // open at once

	Tokens    int64         // of models, a day (UTC)
	CostUSD   float64       // of models that have a price, a day
	ToolCalls int64         // a day
	Time      time.Duration // for which workers work on runs, a day

	WorkspaceBytes int64 // of files in the workspace; of tenants only
	Children       int64 // of each task of a client, in all, as long as it is open; of tenants only

	OnExceeded string        // at a daily limit: Stop, Ask; empty = Stop
	AskTimeout time.Duration // lifetime of the question; 0 = until an answer
}

// nanos is the ledger's unit for dollars, billionths, so that one token of the cheapest model costs at least one
// unit.
const nanos = 1e9

// of returns the limit of a countable resource, in the units of the ledger.
func (l Limits) of(resource id.Name) int64 {
	switch resource {
	case audit.Connections:
		return l.Connections
	case audit.Sessions:
		return l.Sessions
	case audit.Tasks:
		return l.Tasks
	case audit.Teams:
		return l.Teams
	case audit.Tokens:
		return l.Tokens
	case audit.CostUSD:
		return int64(math.Ceil(l.CostUSD * nanos))
	case audit.ToolCalls:
		return l.ToolCalls
	case audit.Time:
		return l.Time.Milliseconds()
	case audit.Children:
		return l.Children
	case audit.WorkspaceBytes:
		return l.WorkspaceBytes
	}
	return 0
}

// Bounded returns the limits with zero in place of None.
func (l Limits) Bounded() Limits { return l.over(l) }

// over returns the limits with an override applied: zero keeps a limit, None removes it.
func (l Limits) over(o Limits) Limits {
	out := Limits{
		Connections: pick(o.Connections, l.Connections), Messages: pick(o.Messages, l.Messages),
		Sessions: pick(o.Sessions, l.Sessions), Tasks: pick(o.Tasks, l.Tasks), Teams: pick(o.Teams, l.Teams),
		Tokens: pick(o.Tokens, l.Tokens), CostUSD: pick(o.CostUSD, l.CostUSD), ToolCalls: pick(o.ToolCalls, l.ToolCalls),
		Time: pick(o.Time, l.Time), WorkspaceBytes: pick(o.WorkspaceBytes, l.WorkspaceBytes), Children: pick(o.Children, l.Children), OnExceeded: l.OnExceeded, AskTimeout: pick(o.AskTimeout, l.AskTimeout),
	}
	if o.OnExceeded != "" {
		out.OnExceeded = o.OnExceeded
	}
	return out
}

func pick[N int64 | float64 | time.Duration](override, def N) N {
	if override == 0 {
		return def
	}
	return max(override, 0)
}

// Override replaces the defaults for one tenant.
type Override struct {
	Tenant     Limits            // of the tenant as a whole
	Principal  Limits            // of each of its principals
	Principals map[string]Limits // of single ones, by subject
}

// Policy holds the limits of all tenants and principals.
type Policy struct {
	Tenant    Limits              // of each tenant as a whole
	Principal Limits              // of each principal
	Tenants   map[string]Override // by name
}

// Of returns the limits of a tenant and of one principal.
func (p Policy) Of(t id.Tenant, principal string) (tenant, own Limits) {
	o := p.Tenants[t.String()]
	return p.Tenant.over(o.Tenant), p.Principal.over(o.Principal).over(o.Principals[principal])
}

// Bounds reports whether the policy limits one of the resources.
func (p Policy) Bounds(resources ...id.Name) bool {
	all := []Limits{p.Tenant, p.Principal}
	for o := range maps.Values(p.Tenants) {
		all = append(append(all, o.Tenant, o.Principal), slices.Collect(maps.Values(o.Principals))...)
	}
	return slices.ContainsFunc(all, func(l Limits) bool {
		return slices.ContainsFunc(resources, func(r id.Name) bool {
			return l.of(r) > 0 || r == audit.Messages && l.Messages > 0
		})
	})
}
