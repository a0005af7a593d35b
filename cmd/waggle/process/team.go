package process

import (
	"context"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/team"
)

// Paths at which viewers watch teams and their members.
const (
	pathTeam   = "/ws/agent-team/{team_id}"
	pathMember = "/ws/agent/{agent_id}"
	// pathAny shows the entity that its query names.
	pathAny = "/ws/agent-team"
)

// members returns the service of the runs of members. It belongs to the role team: an installation without teams does not
// need it.
func (p *process) members(context.Context) (lifecycle.Component, error) {
	return pipeline.NewMembers(runs(p.Config, p.clock.Now), p.manages("team"))
}

func (p *process) team(context.Context) (lifecycle.Component, error) {
	defined := make([]event.TeamDefinition, len(p.Config.Teams))
	for i, t := range p.Config.Teams {
		defined[i] = t.Definition()
	}
	return team.New(team.Config{Teams: defined, Registry: p.registry, Quota: p.quotas(), Access: p.Config.Access.Policy(), Now: p.clock.Now}, p.manages("team"))
}
