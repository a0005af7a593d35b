package task_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// repeats sends a request of a participant as its gateway does: each time under another id of the
// command.
func (r *rig) repeats(taskID string, verb id.Name, commandID, request, connection string, data any) {
	r.T.Helper()
	r.Command(cmd.Command{
		ID: commandID, Request: request, Service: cmd.Task, Verb: verb, Tenant: tenant, Key: id.EntityFromExternal(taskID),
		ReplyTo: subject.ReplyTo(gateway, id.MustName(connection)),
	}, data)
}

// heardOn waits for the next thing that is said to a connection.
func heardOn[T event.Data](r *rig, connection string) (T, string) {
	r.T.Helper()
	a := &agent{rig: r, participant: cmd.Participant{ID: connection}, heard: make(chan event.Event, 1)}
	e := <-r.directTo(connection)
	a.heard <- e
	return hears[T](a), e.ID
}

// TestARepeatIsAnsweredFromTheLog: by whichever replica, on the connection on which it
// came, and the second time as the first.
func TestARepeatIsAnsweredFromTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	finish := make(chan struct{})
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		<-finish
		return tools.Result{Data: c.Arguments}, nil
	}
	s := r.start("a", task.Config{})
	me := r.client()
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	b := r.join(cmd.Participant{ID: "w2", Name: "B"})
	taskID := r.submit(me.ClientID, cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](a)

	call := cmd.ToolRequest{TaskID: taskID, AgentID: "w1", RequestID: "f1", Kind: tools.KindService, Server: "shop", Tool: "buy", Arguments: json.RawMessage(`{"n":1}`)}
	r.repeats(taskID, cmd.CallTool, "x1", "call_r_f1", a.participant.Connection, call)
	r.repeats(taskID, cmd.CallTool, "x2", "call_r_f1", "elsewhere", call) // it runs
	note := cmd.TaskNotification{TaskID: taskID, AgentID: "w1", Message: json.RawMessage(`"half"`)}
	for _, x := range []string{"x3", "x4"} {
		r.repeats(taskID, cmd.NotifyTask, x, "note", a.participant.Connection, note)
	}
	r.Until(logOf(id.KindTask, taskID), event.TaskNotified, 1)
	close(finish)
	first := hears[event.CallFinishedData](a)
	require.Equal(t, "success", first.Status)

	spawn := cmd.SpawnChild{TaskID: taskID, AgentID: "w1", RequestID: "k1", ChildID: "child", TargetName: "B", Data: json.RawMessage(`1`)}
	r.repeats(taskID, cmd.SpawnTask, "x5", "child_r_k1", a.participant.Connection, spawn)
	require.Equal(t, "child", hears[event.ChildCreatedData](a).ChildID)
	require.Equal(t, "child", hears[event.TaskAssignedData](b).TaskID)
	b.done("child", "well")
	ended := hears[event.ChildFinishedData](a)
	message := cmd.TaskMessage{TaskID: taskID, ClientID: me.ClientID, RequestID: "m1", Message: json.RawMessage(`"go on"`)}
	r.repeats(taskID, cmd.MessageTask, "x6_r_m1", "message_r_m1", "client", message)
	hears[event.TaskMessagedData](a)
	inbox := r.Until(logOf(id.KindInbox, me.ClientID), event.TaskMessaged, 1)

	s.Stop()
	r.start("b", task.Config{})
	r.repeats(taskID, cmd.CallTool, "x7", "call_r_f1", "elsewhere", call)
	again, _ := heardOn[event.CallFinishedData](r, "elsewhere")
	require.Equal(t, first, again)
	r.repeats(taskID, cmd.SpawnTask, "x8", "child_r_k1", "elsewhere", spawn)
	made, _ := heardOn[event.ChildCreatedData](r, "elsewhere")
	require.Equal(t, []string{"child", "k1"}, []string{made.ChildID, made.ChildRequestID})
	over, _ := heardOn[event.ChildFinishedData](r, "elsewhere")
	require.Equal(t, ended, over)
	r.repeats(taskID, cmd.MessageTask, "x9_r_m1", "message_r_m1", "client", message)
	sent, frame := heardOn[event.TaskMessagedData](r, "client")
	require.Equal(t, "x6_r_m1", sent.MessageID)
	require.Equal(t, inbox[len(inbox)-1].ID, frame, "the client knows it by its id")

	a.done(taskID, "done")
	stop := cmd.CancelTaskData{TaskID: taskID, ClientID: me.ClientID}
	r.Until(logOf(id.KindTask, taskID), event.TaskFinished, 1)
	r.repeats(taskID, cmd.CancelTask, "x10", "cancel_r_c1", "client", stop)
	no, _ := heardOn[event.CommandRefusedData](r, "client")
	require.Equal(t, "TASK_FINISHED", no.Code)
	require.Equal(t, 1, r.box.made())
	require.Equal(t, "task.created task.assigned call.started task.notified call.finished child.created child.finished task.messaged task.finished",
		types(r.All(logOf(id.KindTask, taskID))))
}

// TestACancelThatIsRepeated: it is confirmed again, under the same id.
func TestACancelThatIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	me := r.client()
	taskID := r.submit(me.ClientID, cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](a)
	var ids []string
	for _, x := range []string{"x1", "x2"} {
		r.repeats(taskID, cmd.CancelTask, x, "cancel_r_c1", "client", cmd.CancelTaskData{TaskID: taskID, ClientID: me.ClientID})
		notice, frame := heardOn[event.NoticeData](r, "client")
		require.True(t, *notice.OK)
		ids = append(ids, frame)
	}
	require.Equal(t, []string{"cancel_r_c1.aside", "cancel_r_c1.aside"}, ids)
	hears[event.TaskFinishedData](a)
	require.Equal(t, "task.created task.assigned task.finished", types(r.All(logOf(id.KindTask, taskID))))
}

// TestARequestThatBecameATaskOfItsOwn: an agent that asks for a child without a task, and
// whose guess is wrong, is answered again, and with the end.
func TestARequestThatBecameATaskOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	b := r.join(cmd.Participant{ID: "w2", Name: "B"})
	spawn := cmd.SpawnChild{TaskID: "gone", AgentID: "w1", RequestID: "k1", ChildID: "own", TargetName: "B", Data: json.RawMessage(`1`), Inferred: true}
	ask := func(x string) {
		r.repeats("gone", cmd.SpawnTask, x, "child_r_k1", a.participant.Connection, spawn)
		require.Equal(t, "own", hears[event.ChildCreatedData](a).ChildID)
	}
	ask("x1")
	hears[event.TaskAssignedData](b)
	ask("x2")
	b.done("own", "well")
	ended := hears[event.ChildFinishedData](a)
	ask("x3")
	require.Equal(t, ended, hears[event.ChildFinishedData](a))
	require.Equal(t, "task.created task.assigned task.finished", types(r.All(logOf(id.KindTask, "own"))))
}

// TestARegistrationThatIsRepeated: a client that says of itself what it said last adds
// nothing to its log.
func TestARegistrationThatIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	me := r.client()
	for _, name := range []string{"Ada", "Ada", "Bob", "Ada"} {
		var said event.InboxRegisteredData
		d := event.InboxRegisteredData{Name: name, Capabilities: []string{"<a>"}, Extra: json.RawMessage(`{"b": "<c>"}`)}
		require.NoError(t, r.ask(cmd.NameClient, me.ClientID, d, &said))
		require.Equal(t, []string{me.ClientID, name}, []string{said.ClientID, said.Name})
	}
	require.Len(t, r.All(logOf(id.KindInbox, me.ClientID)), 1+3)
}
