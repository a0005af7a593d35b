package task_test

import (
	"errors"
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

// gives submits a task for the agents that wait, in the name of a principal. The replica that
// handles it may not know the agents yet.
func (r *rig) gives(of id.Tenant, who string) (string, error) {
	for {
		var v cmd.TaskView
		err := rpc.Call(r.Ctx, r.Conn, cmd.Task, cmd.Submit, cmd.ParticipantRequest{
			Tenant: of, Principal: who, Kind: cmd.ParticipantClient, ID: "client-of-" + who, Name: who,
			Data: servicetest.JSON(r.T, cmd.NewTask{AgentName: "Slow", Data: []byte(`{}`)}),
		}, &v)
		if !errors.Is(err, fault.New(fault.AgentNotFound)) {
			return v.TaskID, err
		}
	}
}

// Two replicas keep one quota of open tasks, of each principal and of the tenant as a
// whole.
func TestOpenTasksAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := task.Config{Quota: quota.Config{
		Policy: quota.Policy{Tenant: quota.Limits{Tasks: 3}, Principal: quota.Limits{Tasks: 2}}, Sweep: 2 * time.Second, // the sweep spares younger holdings
	}}
	doomed := r.start("one", cfg)
	r.start("two", cfg)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	r.join(cmd.Participant{ID: "slow", Name: "Slow"})
	r.join(cmd.Participant{ID: "slow-too", Name: "Slow", Tenant: other})
	servicetest.Bounded{
		Rig: r.Rig, Things: "open tasks", Frees: "Wait until one has ended, or cancel one", Begin: r.gives, Doomed: doomed,
		End: func(taskID string) {
			r.command(taskID, cmd.CancelTask, "cancel-"+taskID, cmd.CancelTaskData{TaskID: taskID, ClientID: "client-of-ann"}, "")
		},
	}.Check()
}
