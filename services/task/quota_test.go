package task_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
)

// gives has somebody give a task to the agents that wait; one of the replicas takes it.
func (r *rig) gives(of id.Tenant, who string) (string, error) {
	var v cmd.TaskView
	err := rpc.Call(r.Ctx, r.Conn, cmd.Task, cmd.Submit, cmd.PeerRequest{
		Tenant: of, Principal: who, Kind: cmd.PeerClient, ID: "client-of-" + who, Name: who,
		Data: servicetest.JSON(r.T, cmd.NewTask{AgentName: "Slow", Data: []byte(`{}`)}),
	}, &v)
	return v.TaskID, err
}

// Two replicas keep one quota of open tasks, of each principal and of the tenant as a
// whole. As many as may be open are; the next is refused, by both. The tasks of another
// tenant do not count. What has ended makes room, also after one of the replicas is gone.
func TestOpenTasksAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := task.Config{Quota: quota.Config{
		Policy: quota.Policy{Tenant: quota.Limits{Tasks: 3}, Principal: quota.Limits{Tasks: 2}}, Sweep: 100 * time.Millisecond,
	}}
	doomed := r.start("one", cfg)
	r.start("two", cfg)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	r.join(cmd.Peer{ID: "slow", Name: "Slow"})
	r.join(cmd.Peer{ID: "slow-too", Name: "Slow", Tenant: other})
	var anns []string
	given := func(of id.Tenant, who string) (taskID string) {
		t.Helper()
		require.Eventually(t, func() bool { // the agent may not be known to both yet
			taskID, err = r.gives(of, who)
			return err == nil
		}, patience, 10*time.Millisecond, "%v", err)
		return taskID
	}
	refused := func(of id.Tenant, who, why string) {
		t.Helper()
		for range 4 { // by whichever is asked
			require.Eventually(t, func() bool {
				_, err = r.gives(of, who)
				isNew := err != nil && fault.From(err, "").Code == fault.AgentNotFound
				return !isNew
			}, patience, 10*time.Millisecond)
			require.ErrorIs(t, err, fault.New(fault.QuotaExceeded))
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, err, "Wait until one has ended, or cancel one")
		}
	}
	for range 2 {
		anns = append(anns, given(tenant, "ann"))
	}
	refused(tenant, "ann", "You have used up the quota of 2 open tasks")
	given(tenant, "bob")
	refused(tenant, "bob", "Your tenant has used up the quota of 3 open tasks")
	for range 2 {
		given(other, "ann")
	}
	refused(other, "ann", "You have used up the quota of 2 open tasks")

	doomed.Stop()
	refused(tenant, "bob", "Your tenant has used up")
	for _, taskID := range anns {
		r.command(taskID, cmd.CancelSwarm, "cancel-"+taskID, cmd.CancelTaskData{TaskID: taskID, ClientID: "client-of-ann"}, "")
	}
	given(tenant, "bob")
	given(tenant, "ann")
	refused(tenant, "eve", "Your tenant has used up")
}
