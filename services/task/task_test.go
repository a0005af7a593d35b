package task_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// TestATaskWithEverything: from the client to an agent and back, with notifications, a
// question, a tool, and a child at another agent. The client sees all of it, in order.
func TestATaskWithEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.play = func(_ context.Context, c tools.Call, told func(tools.Notification)) (tools.Result, error) {
		told(tools.Notification{Type: "progress", Message: "half", At: time.Now()})
		return tools.Result{Data: c.Arguments}, nil
	}
	r.start("a", task.Config{})
	boss, helper := r.join(cmd.Participant{ID: "boss", Name: "Boss"}), r.join(cmd.Participant{ID: "helper", Name: "Helper"})
	me := r.client()
	id1 := r.submit(me.ClientID, cmd.NewTask{AgentName: "Boss", RequestID: "q1"})
	got := hears[event.TaskAssignedData](boss)
	require.Equal(t, 1, got.Attempt)
	require.JSONEq(t, `{"do":"it"}`, string(got.Data))
	boss.says(id1, cmd.ReportTask, cmd.TaskReport{TaskID: id1, AgentID: "boss", Status: "started"})
	boss.says(id1, cmd.NotifyTask, cmd.TaskNotification{TaskID: id1, AgentID: "boss", NotificationType: "info", Message: json.RawMessage(`"hi"`)})

	boss.says(id1, cmd.AskTask, cmd.TaskQuestion{TaskID: id1, AgentID: "boss", RequestID: "ask1", Message: json.RawMessage(`"sure?"`)})
	r.Until(logOf(id.KindInbox, me.ClientID), event.TaskAsked, 1)
	r.command(id1, cmd.MessageTask, "m1", cmd.TaskMessage{TaskID: id1, ClientID: me.ClientID, Message: json.RawMessage(`"yes"`)}, "")
	answer := hears[event.TaskMessagedData](boss)
	require.Equal(t, "ask1", answer.InputID)

	boss.says(id1, cmd.CallTool, cmd.ToolRequest{
		TaskID: id1, AgentID: "boss", RequestID: "f1", Kind: tools.KindService, Server: "shop", Tool: "buy", Arguments: json.RawMessage(`{"n":1}`),
	})
	require.Equal(t, "half", hears[event.CallNotifiedData](boss).Message)
	out := hears[event.CallFinishedData](boss)
	require.Equal(t, "success", out.Status)
	require.Equal(t, "The shop", out.ServerName)
	require.JSONEq(t, `{"n":1}`, string(out.Result))

	boss.says(id1, cmd.SpawnTask, cmd.SpawnChild{
		TaskID: id1, AgentID: "boss", RequestID: "s1", ChildID: "child", TargetName: "Helper", Data: json.RawMessage(`{"part":1}`),
	})
	require.Equal(t, "child", hears[event.ChildCreatedData](boss).ChildID)
	child := hears[event.TaskAssignedData](helper)
	require.JSONEq(t, `{"id":"boss","name":"Boss"}`, string(child.Caller))
	require.Equal(t, me.ClientID, child.ClientID)
	helper.done("child", "part done")
	require.JSONEq(t, `"part done"`, string(hears[event.ChildFinishedData](boss).Result))
	require.Equal(t, "completed", hears[event.TaskFinishedData](helper).Status, "for the load that its gateway counts")

	boss.done(id1, "all done")
	events := r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, 2)
	inOrder(t, r, id1, events)
	inOrder(t, r, "child", events)
	require.Equal(t, "task.created task.assigned task.reported task.notified task.asked task.messaged call.started call.notified "+
		"call.finished child.created child.finished task.finished", types(of(events, id1)))
	var v cmd.TaskView
	require.NoError(t, r.ask(cmd.ShowTask, me.ClientID, cmd.TaskRefData{TaskID: id1}, &v))
	require.Equal(t, "completed", v.Status)
	require.JSONEq(t, `"all done"`, string(v.Result))
	require.Equal(t, "q1", v.RequestID)
}

// of returns the events that were copied from the task's log.
func of(events []event.Event, taskID string) []event.Event {
	var out []event.Event
	for _, e := range events {
		if o := origin(e); o.Log == logOf(id.KindTask, taskID).Name() {
			out = append(out, e)
		}
	}
	return out
}

func origin(e event.Event) (o event.Origin) {
	_ = json.Unmarshal(e.Data, &o)
	return o
}

// inOrder checks that the inbox has every event of the task once, in order, but for
// what is not for clients.
func inOrder(t testing.TB, r *rig, taskID string, inbox []event.Event) {
	t.Helper()
	at := 0
	copies := of(inbox, taskID)
	for _, e := range r.All(logOf(id.KindTask, taskID)) {
		if e.Type == event.TaskRefused || types([]event.Event{e}) == "" {
			continue
		}
		require.Less(t, at, len(copies), "%s seq %d (%s) is missing", taskID, e.Sequence, e.Type)
		require.Equal(t, e.Type, copies[at].Type)
		require.Equal(t, e.Sequence, origin(copies[at]).Seq)
		at++
	}
	require.Len(t, copies, at, "%s: more than there is", types(copies))
}

func TestAnAgentThatIsGoneLosesItsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	first := r.join(cmd.Participant{ID: "w1", Name: "W"})
	me := r.client()
	taskID := r.submit(me.ClientID, cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](first)
	first.leave()
	r.Until(logOf(id.KindTask, taskID), event.TaskReleased, 1)
	second := r.join(cmd.Participant{ID: "w2", Name: "W"})
	require.Equal(t, 2, hears[event.TaskAssignedData](second).Attempt)
	first.done(taskID, "late")
	refused := hears[event.CommandRefusedData](first)
	require.Equal(t, string(fault.TaskNotOwned), refused.Code)
	second.done(taskID, "in time")
	events := r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, 1)
	inOrder(t, r, taskID, events)
	second.done(taskID, "again")
	require.Equal(t, "completed", hears[event.TaskFinishedData](second).Status)
	require.Equal(t, string(fault.TaskFinished), hears[event.CommandRefusedData](second).Code)
}

// TestAnAgentThatComesBackKeepsItsTask, and hears what it has missed.
func TestAnAgentThatComesBackKeepsItsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	me := r.client()
	taskID := r.submit(me.ClientID, cmd.NewTask{AgentID: "w1"})
	hears[event.TaskAssignedData](a)
	r.Until(logOf(id.KindTask, taskID), event.TaskReported, 1) // delivered
	a.set(func(p *cmd.Participant) { p.Online = false })
	r.command(taskID, cmd.MessageTask, "m1", cmd.TaskMessage{TaskID: taskID, ClientID: me.ClientID, Message: json.RawMessage(`"one"`)}, "")
	r.command(taskID, cmd.MessageTask, "m2", cmd.TaskMessage{TaskID: taskID, ClientID: me.ClientID, Message: json.RawMessage(`"two"`)}, "")
	r.Until(logOf(id.KindTask, taskID), event.TaskMessaged, 2)
	a.set(func(p *cmd.Participant) { p.Online, p.Connection = true, "c-new" })
	a.heard = r.directTo("c-new")
	require.JSONEq(t, `"one"`, string(hears[event.TaskMessagedData](a).Message))
	require.JSONEq(t, `"two"`, string(hears[event.TaskMessagedData](a).Message))
	a.done(taskID, "done")
	r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, 1)
	require.Equal(t, "task.created task.assigned task.messaged task.messaged task.finished", types(r.All(logOf(id.KindTask, taskID))))
}

func TestATaskThatIsNotDeliveredGoesToAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	r.setDeaf("c-w1", true)
	r.join(cmd.Participant{ID: "w1", Name: "W"})
	second := r.join(cmd.Participant{ID: "w2", Name: "W"})
	second.set(func(p *cmd.Participant) { p.Load = 5 })
	taskID := r.submit("", cmd.NewTask{AgentName: "W"})
	require.Equal(t, 2, hears[event.TaskAssignedData](second).Attempt)
	second.done(taskID, "x")
	events := r.Until(logOf(id.KindTask, taskID), event.TaskFinished, 1)
	require.Equal(t, "task.created task.assigned task.released task.assigned task.finished", types(events))
}

// departs has the agent leave, and waits until the service knows it as one that is away.
func (r *rig) departs(a *agent) {
	r.T.Helper()
	r.remembered(a.participant.ID)
	a.leave()
	for {
		var out cmd.ParticipantList
		require.NoError(r.T, r.ask(cmd.ListAgents, "c", cmd.ParticipantFilter{Status: "offline"}, &out))
		if slices.ContainsFunc(out.Participants, func(p cmd.Participant) bool { return p.ID == a.participant.ID }) {
			return
		}
	}
}

// remembered waits until the registry has the agent.
func (r *rig) remembered(participant string) {
	r.T.Helper()
	kv, err := r.Conn.JS().KeyValue(r.Ctx, "registry")
	require.NoError(r.T, err)
	w, err := kv.WatchAll(r.Ctx)
	require.NoError(r.T, err)
	defer func() { require.NoError(r.T, w.Stop()) }()
	for {
		select {
		case e := <-w.Updates():
			var p cmd.Participant
			if e != nil && json.Unmarshal(e.Value(), &p) == nil && p.ID == participant {
				return
			}
		case <-time.After(maxWait):
			require.Fail(r.T, "the registry does not have it")
		}
	}
}

func TestACancelReachesAgentsAndChildren(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	boss, helper := r.join(cmd.Participant{ID: "boss", Name: "Boss"}), r.join(cmd.Participant{ID: "helper", Name: "Helper"})
	me := r.client()
	taskID := r.submit(me.ClientID, cmd.NewTask{AgentName: "Boss"})
	hears[event.TaskAssignedData](boss)
	boss.says(taskID, cmd.SpawnTask, cmd.SpawnChild{TaskID: taskID, AgentID: "boss", ChildID: "kid", TargetName: "Helper", Data: json.RawMessage("1")})
	hears[event.ChildCreatedData](boss)
	hears[event.TaskAssignedData](helper)
	r.command(taskID, cmd.CancelTask, "stop", cmd.CancelTaskData{TaskID: taskID, ClientID: me.ClientID}, "")
	require.Equal(t, "cancelled", hears[event.TaskFinishedData](boss).Status)
	require.Equal(t, "cancelled", hears[event.TaskFinishedData](helper).Status)
	r.Until(logOf(id.KindTask, taskID), event.ChildFinished, 1)
}

func next(t *testing.T, c <-chan cmd.Command) cmd.Command {
	t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(maxWait):
		require.Fail(t, "no command")
		panic("unreachable")
	}
}

// TestTimersFindWhatTheWatchMissed: the agent leaves, and another one comes, while no
// service runs. The next one has never heard of the tasks, and finds out all the same.
func TestTimersFindWhatTheWatchMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := task.Config{Rules: assignment.Rules{Lease: time.Second}}
	s := r.start("a", cfg)
	w, known := r.join(cmd.Participant{ID: "w1", Name: "W"}), r.join(cmd.Participant{ID: "v1", Name: "V"})
	r.departs(known)
	held := r.submit("", cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](w)
	r.Until(logOf(id.KindTask, held), event.TaskReported, 1)
	waiting := r.submit("", cmd.NewTask{AgentName: "V"})
	r.Until(logOf(id.KindTask, waiting), event.TaskQueued, 1)
	s.Stop()
	w.leave()
	x, y := r.join(cmd.Participant{ID: "w2", Name: "W"}), r.join(cmd.Participant{ID: "v2", Name: "V"})
	r.start("b", cfg)
	require.Equal(t, 2, hears[event.TaskAssignedData](x).Attempt)
	require.Equal(t, 1, hears[event.TaskAssignedData](y).Attempt)
}

// TestLargeTasksAndResults: a large task is refused at once, and a large result is shortened for the client only.
func TestLargeTasksAndResults(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	me := r.client()
	huge := func(kib int) json.RawMessage { return servicetest.JSON(t, strings.Repeat("x", kib<<10)) }
	isFault(t, r.ask(cmd.Submit, me.ClientID, cmd.NewTask{AgentName: "W", Data: huge(251)}, nil), fault.MessageTooBig)
	taskID := r.submit(me.ClientID, cmd.NewTask{AgentName: "W", Data: huge(200)})
	hears[event.TaskAssignedData](a)
	a.says(taskID, cmd.FinishTask, cmd.TaskResult{TaskID: taskID, AgentID: "w1", Result: huge(254)})
	inbox := r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, 1)
	end := inbox[len(inbox)-1]
	require.Contains(t, string(end.Data), `"shortened":true`)
	require.Less(t, len(end.Data), 1000)
	var v cmd.TaskView
	require.NoError(t, r.ask(cmd.ShowTask, me.ClientID, cmd.TaskRefData{TaskID: taskID}, &v))
	require.Len(t, v.Result, 254<<10+2)
}
