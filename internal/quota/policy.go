// Package quota bounds what tenants and principals may have, over all processes of an
// installation: connections, messages, sessions, tasks and teams, and by the day tokens,
// cost, tool calls and time.
//
// What is held is a ledger in a KV bucket: one key for each holder, whose value says
// how much the holder has. A holder writes its own keys only, so nothing is added up
// twice, however often it is written. Whoever wants one more writes first and looks
// then: the writes of a bucket have one order, so of two who want the last one exactly
// the second sees the first. Two at once may both be refused near the limit; both let in
// they never are.
//
// What dies with its holder: the connections of a gateway count as long as the directory
// lists it (30 s after it was killed, at most), what was used for the day, and what belongs to
// a log until the log has ended, which is looked up again and again. So no crash leaves
// a count wrong for ever.
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

// None as a limit of an override means that there is none, whatever the default says.
const None = -1

// What becomes of a run that comes to a limit of a day.
const (
	Stop = event.BudgetStop // it fails with QUOTA_EXCEEDED
	Ask  = event.BudgetAsk  // people are asked whether it may go on, up to as much once more
)

// Limits bound a tenant or a principal. A zero field does not bound anything.
type Limits struct {
	Connections int64   // open at once
	Messages    float64 // a second
	Sessions    int64   // open at once
	Tasks       int64   // of the swarm, open at once
	Teams       int64   // open at once

	Tokens    int64         // of models, a day (UTC)
	CostUSD   float64       // of models that have a price, a day
	ToolCalls int64         // a day
	Time      time.Duration // for which workers are busy with runs, a day

	OnExceeded string        // what is counted by the day is used up: Stop, Ask; empty = Stop
	AskTimeout time.Duration // how long the question stays open; 0 = until somebody answers
}

// nanos is how the ledger counts dollars: in billionths, so that a token of the cheapest
// model is some.
const nanos = 1e9

// of returns the limit of a resource that is counted, as the ledger counts it.
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
	}
	return 0
}

// over returns the limits with what an override says in place: zero says nothing, None
// takes a limit away.
func (l Limits) over(o Limits) Limits {
	out := Limits{
		Connections: pick(o.Connections, l.Connections), Messages: pick(o.Messages, l.Messages),
		Sessions: pick(o.Sessions, l.Sessions), Tasks: pick(o.Tasks, l.Tasks), Teams: pick(o.Teams, l.Teams),
		Tokens: pick(o.Tokens, l.Tokens), CostUSD: pick(o.CostUSD, l.CostUSD), ToolCalls: pick(o.ToolCalls, l.ToolCalls),
		Time: pick(o.Time, l.Time), OnExceeded: l.OnExceeded, AskTimeout: pick(o.AskTimeout, l.AskTimeout),
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

// Override is what one tenant may have in place of the defaults.
type Override struct {
	Tenant     Limits            // of the tenant as a whole
	Principal  Limits            // of each of its principals
	Principals map[string]Limits // of single ones, by subject
}

// Policy says what everybody may have.
type Policy struct {
	Tenant    Limits              // of each tenant as a whole
	Principal Limits              // of each principal
	Tenants   map[string]Override // by name
}

// Of returns what a tenant, and one of its principals, may have.
func (p Policy) Of(t id.Tenant, principal string) (tenant, own Limits) {
	o := p.Tenants[t.String()]
	return p.Tenant.over(o.Tenant), p.Principal.over(o.Principal).over(o.Principals[principal])
}

// Bounds reports whether anybody has a limit of one of the resources.
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
