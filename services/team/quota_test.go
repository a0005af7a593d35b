package team_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			r.Command(cmd.Command{
				ID: "close-" + teamID, Service: cmd.Team, Verb: cmd.CloseTeam, Tenant: tenant, Key: id.EntityFromExternal(teamID), Principal: "ann",
			}, cmd.CloseSession{})
		},
	}.Check()
}

// TestAClosedTeamMakesRoomAtOnce: the sweep has no part in it.
func TestAClosedTeamMakesRoomAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{Quota: quota.Config{Policy: quota.Policy{Tenant: quota.Limits{Teams: 1}}, Sweep: time.Hour}})
	for range 5 {
		var name string
		require.Eventually(t, func() (ok bool) {
			var err error
			name, err = r.founds(tenant, "alice")
			return err == nil
		}, maxWait, 10*time.Millisecond)
		r.command(teamLog(id.EntityFromExternal(name)), cmd.CloseTeam, "close-"+name, "", cmd.CloseSession{}, "")
	}
}
