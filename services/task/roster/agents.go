package roster

import (
	"slices"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
)

// Agents are those of a tenant, with those of all tenants and those that are only remembered.
type Agents struct {
	of     *Roster
	tenant id.Tenant
}

// Agent implements assignment.Agents.
func (a Agents) Agent(agentID string) (assignment.Candidate, bool) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	for _, t := range []id.Tenant{a.tenant, {}} {
		if rec := a.of.known[Key{t, cmd.ParticipantAgent, agentID}]; rec != nil {
			return a.of.candidate(rec, a.tenant), true
		}
	}
	return assignment.Candidate{}, false
}

// Walk implements assignment.Agents.
func (a Agents) Walk(want event.TaskCreatedData, f func(assignment.Candidate) bool) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	g := a.of.group(a.tenant, cmd.ParticipantAgent)
	best := g.named[want.WantedName]
	if want.WantedName == "" {
		best = shortest(nil, g.able, want.Capabilities)
	}
	shared := slices.DeleteFunc(a.shared(want), func(c assignment.Candidate) bool { return !c.Online })
	slices.SortFunc(shared, assignment.Compare)
	for _, rec := range best.sort() {
		for len(shared) > 0 && assignment.Compare(shared[0], rec.suits.candidate) < 0 {
			if !f(shared[0]) {
				return
			}
			shared = shared[1:]
		}
		if assignment.Matches(want, rec.suits.candidate) && !f(rec.suits.candidate) {
			return
		}
	}
	for _, c := range shared {
		if !f(c) {
			return
		}
	}
}

// Some implements assignment.Agents.
func (a Agents) Some(want event.TaskCreatedData, n int) []assignment.Candidate {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if want.WantedName == "" && len(want.Capabilities) == 0 {
		return nil
	}
	g := a.of.group(a.tenant, cmd.ParticipantAgent)
	out := a.shared(want)
	list := g.with(want.Capabilities).sort()
	if want.WantedName != "" {
		list = g.all.behind(Spot{Name: want.WantedName})
	}
	for _, rec := range list {
		if len(out) >= n || want.WantedName != "" && rec.shown.Name != want.WantedName {
			break
		}
		if rec.wantedBy(want) {
			out = append(out, a.of.candidate(rec, a.tenant))
		}
	}
	return out[:min(n, len(out))]
}

// shared returns the agents of all tenants, a few, that the task matches.
func (a Agents) shared(want event.TaskCreatedData) (out []assignment.Candidate) {
	for _, rec := range a.of.group(id.Tenant{}, cmd.ParticipantAgent).all.sort() {
		if rec.wantedBy(want) {
			out = append(out, a.of.candidate(rec, a.tenant))
		}
	}
	return out
}

// Agents returns the agents of a tenant.
func (r *Roster) Agents(t id.Tenant) Agents { return Agents{of: r, tenant: t} }
