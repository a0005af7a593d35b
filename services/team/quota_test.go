package team_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/team"
)

// founds has somebody found a team; one of the replicas takes it.
func (r *rig) founds(of id.Tenant, who string) (cmd.TeamView, error) {
	d := crew("solo", agent("Ann"))
	var v cmd.TeamView
	err := rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.FoundTeam, cmd.TeamRequest{Tenant: of, Principal: who, Definition: &d}, &v)
	return v, err
}

// Two replicas keep one quota of open teams, of each principal and of the tenant as a
// whole. As many as may be open are; the next is refused, by both. The teams of another
// tenant do not count. What is shut down makes room, also when nobody has seen that it
// was, because who would have died.
func TestOpenTeamsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := team.Config{Quota: quota.Config{
		Policy: quota.Policy{Tenant: quota.Limits{Teams: 3}, Principal: quota.Limits{Teams: 2}}, Sweep: 100 * time.Millisecond,
	}}
	doomed := r.start("one", cfg)
	r.start("two", cfg)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	var anns []cmd.TeamView
	opens := func(of id.Tenant, who string) cmd.TeamView {
		t.Helper()
		v, err := r.founds(of, who)
		require.NoError(t, err)
		return v
	}
	refused := func(of id.Tenant, who, why string) {
		t.Helper()
		for range 4 { // by whichever is asked
			_, err := r.founds(of, who)
			require.ErrorIs(t, err, fault.New(fault.QuotaExceeded))
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, err, "Shut one down and try again")
		}
	}
	for range 2 {
		anns = append(anns, opens(tenant, "ann"))
	}
	refused(tenant, "ann", "You have used up the quota of 2 open teams")
	opens(tenant, "bob")
	refused(tenant, "bob", "Your tenant has used up the quota of 3 open teams")
	for range 2 {
		opens(other, "ann")
	}
	refused(other, "ann", "You have used up the quota of 2 open teams")

	doomed.Stop()
	refused(tenant, "bob", "Your tenant has used up")
	for i, v := range anns {
		r.command(teamLog(id.EntityFromExternal(v.TeamID)), cmd.CloseTeam, fmt.Sprint("close-", i), "", cmd.CloseSession{}, "")
	}
	for range 2 {
		require.Eventually(t, func() bool {
			_, err := r.founds(tenant, "bob")
			if err != nil {
				_, err = r.founds(tenant, "ann")
			}
			return err == nil
		}, patience, 10*time.Millisecond)
	}
	refused(tenant, "eve", "Your tenant has used up")
}
