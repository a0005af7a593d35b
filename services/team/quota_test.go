package team_test

import (
	"testing"
	"time"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/team"
)

// founds creates a team in the name of a principal, by one of the replicas.
func (r *rig) founds(of id.Tenant, who string) (string, error) {
	d := teamOf("solo", agent("Ann"))
	var v cmd.TeamView
	err := rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.FoundTeam, cmd.TeamRequest{Tenant: of, Principal: who, Definition: &d}, &v)
	return v.TeamID, err
}

// Two replicas keep one quota of open teams, of each principal and of the tenant. A closed team
// makes room also if the replica that would have noticed is dead.
func TestOpenTeamsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := team.Config{Quota: quota.Config{
		Policy: quota.Policy{Tenant: quota.Limits{Teams: 3}, Principal: quota.Limits{Teams: 2}},
		Sweep:  6 * time.Second, // it spares younger holdings, also on a machine that pauses before the team is in its log
	}}
	doomed := r.start("one", cfg)
	r.start("two", cfg)
	servicetest.Bounded{
		Rig: r.Rig, Things: "open teams", Frees: "Shut one down and try again", Begin: r.founds, Doomed: doomed,
		End: func(teamID string) {
			r.command(teamLog(id.EntityFromExternal(teamID)), cmd.CloseTeam, "close-"+teamID, "", cmd.CloseSession{}, "")
		},
	}.Check()
}
