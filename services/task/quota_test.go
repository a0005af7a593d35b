package task_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
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
		Policy: quota.Policy{Tenant: quota.Limits{Tasks: 3}, Principal: quota.Limits{Tasks: 2}},
		Sweep:  6 * time.Second, // it spares younger holdings, also on a machine that pauses before the task is in its log
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

// TestChildrenOfATaskAreBounded: a task of a client has so many children in all, with those of its children, and a child
// that has ended counts on. A repeat is answered, other tasks are not concerned, and the end of the task frees the places.
func TestChildrenOfATaskAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	refused := make(chan quota.Refusal, 10)
	policy := quota.Policy{Tenant: quota.Limits{Children: 3}}
	r.start("one", task.Config{Quota: quota.Config{Policy: policy, Sweep: 2 * time.Second, Refused: func(f quota.Refusal) { refused <- f }}})
	boss, helper := r.join(cmd.Participant{ID: "boss", Name: "Boss"}), r.join(cmd.Participant{ID: "helper", Name: "Helper"})
	me := r.client()
	begin := func() string {
		taskID := r.submit(me.ClientID, cmd.NewTask{AgentName: "Boss"})
		hears[event.TaskAssignedData](boss)
		return taskID
	}
	spawn := func(a *agent, agentID, parent, child, target string) {
		a.says(parent, cmd.SpawnTask, cmd.SpawnChild{
			TaskID: parent, AgentID: agentID, RequestID: child, ChildID: child, TargetName: target, Data: json.RawMessage("1"),
		})
	}
	born := func(a *agent, agentID, parent, child, target string) {
		spawn(a, agentID, parent, child, target)
		require.Equal(t, child, hears[event.ChildCreatedData](a).ChildID)
	}
	root := begin()
	born(boss, "boss", root, "kid-1", "Helper")
	hears[event.TaskAssignedData](helper)
	born(helper, "helper", "kid-1", "grandkid", "Boss")
	require.Equal(t, "grandkid", hears[event.TaskAssignedData](boss).TaskID)
	born(boss, "boss", root, "kid-2", "Helper")
	require.Equal(t, "kid-2", hears[event.TaskAssignedData](helper).TaskID)
	helper.done("kid-2", "2")
	require.Equal(t, "kid-2", hears[event.TaskFinishedData](helper).TaskID)
	hears[event.ChildFinishedData](boss)

	for agentID, at := range map[string]struct {
		a      *agent
		parent string
	}{"boss": {boss, root}, "helper": {helper, "kid-1"}} {
		spawn(at.a, agentID, at.parent, "too-many-of-"+agentID, "Helper")
		no := hears[event.CommandRefusedData](at.a)
		require.Equal(t, string(fault.QuotaExceeded), no.Code)
		require.Equal(t, "This task has used up the quota of 3 children in all. Do the rest within the task, or end it and begin another.", no.Message)
		f := <-refused
		require.Equal(t, []any{"children", quota.ScopeTask, int64(3)}, []any{f.Resource.String(), f.Scope, f.Limit})
	}
	other := begin()
	born(boss, "boss", other, "kid-of-another", "Helper")
	hears[event.TaskAssignedData](helper)

	uses := func() []quota.Use {
		got, err := quota.InUse(r.Ctx, r.Conn, policy, time.Now())
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []quota.Use{
		{Tenant: tenant.String(), Principal: root, Resource: "children", Used: 3, Limit: 3},
		{Tenant: tenant.String(), Principal: other, Resource: "children", Used: 1, Limit: 3},
	}, uses())
	boss.done(root, "over")
	r.Until(logOf(id.KindTask, root), event.TaskFinished, 1)
	require.Eventually(t, func() bool { return len(uses()) == 1 }, maxWait, 50*time.Millisecond)
}

// TestChildrenThatBecomeTasksAreBounded: an agent that asks for children of tasks that it does not have gets tasks of its
// own within the quota of tasks, and no more. Asked for again, one that exists answers.
func TestChildrenThatBecomeTasksAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	policy := quota.Policy{Principal: quota.Limits{Tasks: 2}}
	r.start("one", task.Config{Quota: quota.Config{Policy: policy, Sweep: time.Hour}})
	boss, helper := r.join(cmd.Participant{ID: "boss", Name: "Boss"}), r.join(cmd.Participant{ID: "helper", Name: "Helper"})
	ask := func(child string) {
		boss.says("gone", cmd.SpawnTask, cmd.SpawnChild{
			TaskID: "gone", AgentID: "boss", RequestID: child, ChildID: child, TargetName: "Helper", Data: json.RawMessage("1"), Inferred: true,
		})
	}
	for _, child := range []string{"own-1", "own-2"} {
		ask(child)
		require.Equal(t, child, hears[event.ChildCreatedData](boss).ChildID)
		require.Equal(t, child, hears[event.TaskAssignedData](helper).TaskID)
	}
	ask("own-3")
	require.Equal(t, string(fault.QuotaExceeded), hears[event.CommandRefusedData](boss).Code)
	ask("own-1")
	require.Equal(t, "own-1", hears[event.ChildCreatedData](boss).ChildID)
	helper.done("own-1", "1")
	require.Equal(t, "own-1", hears[event.ChildFinishedData](boss).ChildID)
	hears[event.TaskFinishedData](helper)
	require.Eventually(t, func() bool {
		got, err := quota.InUse(r.Ctx, r.Conn, policy, time.Now())
		require.NoError(t, err)
		return len(got) == 1 && got[0].Used == 1
	}, maxWait, 20*time.Millisecond)
	ask("own-3")
	require.Equal(t, "own-3", hears[event.ChildCreatedData](boss).ChildID)
}
