package task_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// submits asks for a task as the gateway of an agent without any does.
func (a *agent) submits(n cmd.NewTask) error {
	a.T.Helper()
	return rpc.Call(a.Ctx, a.Conn, cmd.Task, cmd.Submit, cmd.ParticipantRequest{
		Tenant: tenant, Kind: cmd.ParticipantAgent, ID: a.participant.ID, Name: a.participant.Name, RequestID: "K",
		ReplyTo: subject.ReplyTo(gateway, id.MustName(a.participant.Connection)), Data: servicetest.JSON(a.T, n),
	}, &cmd.TaskView{})
}

// TestAnAgentAsksOutsideOfAnyTask: it is told that the task was accepted, and of its end
// once, also if it was away meanwhile.
func TestAnAgentAsksOutsideOfAnyTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	boss, helper := r.join(cmd.Participant{ID: "b", Name: "Boss"}), r.join(cmd.Participant{ID: "h", Name: "Helper"})
	require.NoError(t, boss.submits(cmd.NewTask{TaskID: "child", AgentName: "Helper", Data: json.RawMessage(`1`)}))
	accepted := hears[event.ChildCreatedData](boss)
	require.Equal(t, []string{"child", "K", "Helper", ""}, []string{accepted.ChildID, accepted.ChildRequestID, accepted.ChildAgentName, accepted.TaskID})
	given := hears[event.TaskAssignedData](helper)
	require.JSONEq(t, `{"id":"b","name":"Boss"}`, string(given.Caller))
	require.Empty(t, given.ParentID+given.ClientID)

	boss.set(func(p *cmd.Participant) { p.Online = false })
	helper.done("child", "done")
	r.Until(logOf(id.KindTask, "child"), event.TaskFinished, 1)
	boss.set(func(p *cmd.Participant) { p.Online = true })
	end := hears[event.ChildFinishedData](boss)
	require.Equal(t, []string{"child", "completed", `"done"`}, []string{end.ChildID, end.Status, string(end.Result)})
	helper.done("child", "again")
	require.Equal(t, "completed", hears[event.TaskFinishedData](helper).Status)
	hears[event.CommandRefusedData](helper)

	isFault(t, boss.submits(cmd.NewTask{TaskID: "other", AgentName: "Nobody", Data: json.RawMessage(`1`)}), fault.AgentNotFound)
	require.Empty(t, boss.heard)
}

// TestAnInferredParentThatIsNone: an agent that has not named the task and does not hold it (any
// more) gets a child without a parent.
func TestAnInferredParentThatIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	boss, helper := r.join(cmd.Participant{ID: "b", Name: "Boss"}), r.join(cmd.Participant{ID: "h", Name: "Helper"})
	taskID := r.submit(r.client().ClientID, cmd.NewTask{AgentName: "Boss"})
	hears[event.TaskAssignedData](boss)
	spawn := cmd.SpawnChild{
		TaskID: taskID, AgentID: "b", AgentName: "Boss", RequestID: "K", ChildID: "one", TargetName: "Helper", Data: json.RawMessage(`1`), Inferred: true,
	}
	boss.says(taskID, cmd.SpawnTask, spawn)
	require.Equal(t, taskID, hears[event.ChildCreatedData](boss).TaskID, "it has the task")
	require.Equal(t, taskID, hears[event.TaskAssignedData](helper).ParentID)
	helper.done("one", "1")
	hears[event.TaskFinishedData](helper)
	hears[event.ChildFinishedData](boss)
	boss.done(taskID, "over")
	hears[event.TaskFinishedData](boss)

	for parent, child := range map[string]string{taskID: "two", "never-there": "three"} {
		spawn.TaskID, spawn.ChildID = parent, child
		boss.says(parent, cmd.SpawnTask, spawn)
		require.Empty(t, hears[event.ChildCreatedData](boss).TaskID)
		require.Empty(t, hears[event.TaskAssignedData](helper).ParentID)
		helper.done(child, "2")
		hears[event.TaskFinishedData](helper)
		require.Equal(t, child, hears[event.ChildFinishedData](boss).ChildID)
	}
	spawn.Inferred, spawn.TaskID, spawn.ChildID = false, taskID, "four"
	boss.says(taskID, cmd.SpawnTask, spawn)
	require.Equal(t, string(fault.TaskFinished), hears[event.CommandRefusedData](boss).Code, "it was named")
}

// TestARequestThatComesAgain gets the stored outcome: the same task, with its end once it
// has one, and no second one. Another client's request is another.
func TestARequestThatComesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	me := r.client()
	give := func() (v cmd.TaskView) {
		require.NoError(t, r.ask(cmd.Submit, me.ClientID, cmd.NewTask{TaskID: "same", RequestID: "f", AgentName: "W", Data: json.RawMessage(`1`)}, &v))
		return v
	}
	require.False(t, give().Before)
	require.Equal(t, "same", hears[event.TaskAssignedData](a).TaskID)
	again := give()
	require.Equal(t, []string{"same", "running", "w1", "W"}, []string{again.TaskID, again.Status, again.AgentID, again.AgentName})
	require.True(t, again.Before)
	a.done("same", "done")
	hears[event.TaskFinishedData](a)
	a.leave()
	again = give()
	require.True(t, again.Before)
	require.Equal(t, []string{"completed", `"done"`}, []string{again.Status, string(again.Result)})
	require.Equal(t, "task.created task.assigned task.finished", types(r.All(logOf(id.KindTask, "same"))))

	r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, 1) // the client is told last
	for range 2 {
		var n cmd.ClientNote
		require.NoError(t, r.ask(cmd.SendClient, "other", cmd.ClientNote{MessageID: "m", TargetID: me.ClientID, Data: json.RawMessage(`1`)}, &n))
	}
	require.NoError(t, r.ask(cmd.SendClient, "other", cmd.ClientNote{MessageID: "n", TargetID: me.ClientID, Data: json.RawMessage(`2`)}, &cmd.ClientNote{}))
	require.Len(t, r.Until(logOf(id.KindInbox, me.ClientID), event.InboxMessaged, 2), 1+3+2, "created, the task's events, two messages")
}

// TestTheAgentOfATaskIsSaidAtOnce: a request by name, id or capabilities returns the agent, also if
// the task has to wait for it.
func TestTheAgentOfATaskIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	r.join(cmd.Participant{ID: "w1", Name: "W", Capabilities: []string{"x"}})
	me := r.client()
	for _, n := range []cmd.NewTask{{AgentName: "W"}, {AgentID: "w1"}, {Capabilities: []string{"x"}}} {
		e := r.Until(logOf(id.KindTask, r.submit(me.ClientID, n)), event.TaskCreated, 1)[0]
		d, err := event.As[event.TaskCreatedData](e)
		require.NoError(t, err)
		require.Equal(t, []string{"w1", "W"}, []string{d.ExpectedID, d.ExpectedName})
	}
	back, err := openAgain(r, me)
	require.NoError(t, err)
	require.Equal(t, me.Token, back.Token, "a client that is back is told with what it may come again")
}

func openAgain(r *rig, me cmd.OpenClientReply) (out cmd.OpenClientReply, err error) {
	err = rpc.Call(r.Ctx, r.Conn, cmd.Task, cmd.OpenClient, cmd.OpenClientRequest{Tenant: tenant, Principal: "p", ClientID: me.ClientID, Token: me.Token}, &out)
	return out, err
}
