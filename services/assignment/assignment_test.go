package assignment_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/assignment"
)

func TestATaskFromBeginningToEnd(t *testing.T) {
	w := newWorld(t)
	require.Empty(t, w.state.Status())
	d := forA()
	d.TimeoutMS, d.Caller = 60_000, json.RawMessage(`{"id":"p"}`)
	require.Equal(t, []event.Type{event.TaskCreated, event.TaskAssigned}, w.do(command.CreateTask, "c", d))
	require.Equal(t, assignment.StatusRunning, w.state.Status())
	got := w.state.Undelivered()
	require.Equal(t, event.TaskAssignedData{
		TaskHead: event.TaskHead{TaskID: "t1", RequestID: "r1", ClientID: "c1", AgentID: "a1", AgentName: "A", Attempt: 1},
		TaskType: "sum", Data: raw, Caller: d.Caller, Deadline: w.now.Add(time.Minute), Owner: "alice",
	}, *got)

	w.now = w.now.Add(time.Second)
	require.Equal(t, []event.Type{event.TaskReported}, w.do(command.ReportTask, "s", command.TaskReport{AgentID: "a1", Status: "started", Progress: raw}))
	require.Nil(t, w.state.Undelivered(), "an agent that speaks has the task")
	require.JSONEq(t, string(raw), string(w.state.View().Progress))
	require.Equal(t, []event.Type{event.TaskNotified}, w.do(command.NotifyTask, "n", command.TaskNotification{AgentID: "a1", NotificationType: "info", Message: raw, Data: json.RawMessage(`9`)}))
	require.JSONEq(t, string(raw), string(w.state.View().Progress), "this says nothing about progress")
	require.Equal(t, []event.Type{event.TaskNotified}, w.do(command.NotifyTask, "n2", command.TaskNotification{AgentID: "a1", NotificationType: "progress", Message: raw, Data: json.RawMessage(`{"progress":50}`)}))
	require.JSONEq(t, `{"progress":50}`, string(w.state.View().Progress))
	require.Equal(t, []event.Type{event.TaskFinished}, w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1", Result: raw}))
	end := w.ended(assignment.StatusCompleted, "")
	require.JSONEq(t, string(raw), string(end.Result))
	require.Equal(t, end.Result, w.state.View().Result)
	require.Equal(t, w.log[0].Time, end.CreatedAt)
	require.Equal(t, w.now, w.state.View().EndedAt)
	require.Equal(t, w.log[0].Time, w.state.View().CreatedAt)

	require.Empty(t, w.do(command.CreateTask, "c", d), "a repeated command changes nothing")
	require.Nil(t, w.direct)
	require.Empty(t, w.do(command.CreateTask, "c2", d))
	require.Equal(t, "task_id", w.refused(string(fault.InvalidField)).Field)
}

func TestDefaultsOfANewTask(t *testing.T) {
	w := newWorld(t)
	w.rules.TaskTimeout = time.Hour
	w.do(command.CreateTask, "c", command.NewTask{AgentName: "A"})
	task := w.state.Task()
	require.Equal(t, "t1", task.TaskID)
	require.Equal(t, "null", string(task.Data))
	require.Equal(t, int64(30_000), task.QueueMS)
	require.Equal(t, int64(3_600_000), task.TimeoutMS)
	require.Equal(t, "alice", task.Principal)
	require.Equal(t, w.now.Add(time.Hour), w.state.Deadline())
}

func TestTheAgentIsUnknown(t *testing.T) {
	for name, d := range map[string]command.NewTask{
		"name":         {AgentName: "nobody"},
		"id":           {AgentID: "a9"},
		"capabilities": {Capabilities: []string{"x", "z"}},
		"nothing":      {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.Equal(t, []event.Type{event.TaskCreated, event.TaskFinished}, w.do(command.CreateTask, "c", d))
			require.Equal(t, fault.Lookup(fault.AgentNotFound).Message, w.ended(assignment.StatusFailed, "AGENT_NOT_FOUND").Error)
		})
	}
}

func TestAKnownAgentIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.leave("a1")
	w.leave("a2")
	require.Equal(t, []event.Type{event.TaskCreated, event.TaskQueued}, w.do(command.CreateTask, "c", forA()))
	var q event.TaskQueuedData
	w.last(&q)
	require.Equal(t, "offline", q.Reason)
	require.Equal(t, assignment.StatusQueued, w.state.Status())
	require.True(t, w.state.Waiting())
	require.Equal(t, w.now.Add(30*time.Second), w.state.Due(w.env()))
	require.Empty(t, w.do(command.CheckTask, "early", nil))

	w.agent("a2").Online = true
	require.Equal(t, []event.Type{event.TaskAssigned}, w.do(command.CheckTask, "came", nil))
	require.Equal(t, "a2", w.state.Holder())
	require.False(t, w.state.Waiting())
}

func TestTheQueueHasAnEnd(t *testing.T) {
	w := newWorld(t)
	w.leave("b1")
	d := forA()
	d.AgentName, d.QueueMS = "B", 1500
	w.do(command.CreateTask, "c", d)
	start := w.now
	require.Equal(t, []event.Type{event.TaskFinished}, w.due())
	require.Equal(t, 1500*time.Millisecond, w.now.Sub(start))
	w.ended(assignment.StatusFailed, "AGENT_OFFLINE")
}

func TestABusyAgentIsGivenTasks(t *testing.T) {
	w := newWorld(t)
	w.agent("b1").Status = command.StatusBusy
	d := forA()
	d.AgentName = "B"
	w.do(command.CreateTask, "c", d)
	var a event.TaskAssignedData
	w.last(&a)
	require.Equal(t, "b1", a.AgentID)
}

func TestAnAgentInMaintenanceIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.agent("b1").Status = command.StatusMaintenance
	d := forA()
	d.AgentName = "B"
	w.do(command.CreateTask, "c", d)
	var q event.TaskQueuedData
	w.last(&q)
	require.Equal(t, "busy", q.Reason)
	w.due()
	require.Contains(t, w.ended(assignment.StatusFailed, "AGENT_OFFLINE").Error, "did not accept tasks")
}

func TestTheTimeOfATask(t *testing.T) {
	w := newWorld(t)
	d := forA()
	d.TimeoutMS = 10_000
	w.do(command.CreateTask, "c", d)
	require.Equal(t, w.now.Add(10*time.Second), w.state.Due(w.env()))
	require.Equal(t, []event.Type{event.TaskFinished}, w.due())
	w.ended(assignment.StatusFailed, "TASK_TIMEOUT")

	d.TimeoutMS = 1 << 62
	w = newWorld(t)
	w.do(command.CreateTask, "c", d)
	require.True(t, w.state.Deadline().After(w.now), "a huge number is a long time")
}

func TestALostAgentIsReplaced(t *testing.T) {
	w := running(t)
	w.leave("a1")
	gone := command.AgentGone{AgentID: "a1", Attempt: 1}
	require.Equal(t, []event.Type{event.TaskReleased, event.TaskAssigned}, w.do(command.ReleaseTask, "g", gone))
	require.Equal(t, "a2", w.state.Holder())
	require.Equal(t, 2, w.state.Head().Attempt)
	require.NotNil(t, w.state.Undelivered())
	require.Empty(t, w.do(command.ReleaseTask, "g", gone), "a repeated command changes nothing")
	require.Empty(t, w.do(command.ReleaseTask, "g2", gone), "another attempt is not touched")
	require.Empty(t, w.do(command.ReleaseTask, "g3", command.AgentGone{AgentID: "a1", Attempt: 2}))

	late := command.TaskResult{AgentID: "a1", Result: raw}
	require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.FinishTask, "late", late))
	w.refused("TASK_NOT_OWNED")
	var refused event.TaskRefusedData
	w.last(&refused)
	require.Equal(t, "a1", refused.By)
	require.Equal(t, "result", refused.What)
	require.Equal(t, "a2", refused.AgentID)
	require.Empty(t, w.do(command.FinishTask, "late", late), "recorded once")
	w.refused("TASK_NOT_OWNED")

	w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a2", Result: raw})
	w.ended(assignment.StatusCompleted, "")
	require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.FinishTask, "later", command.TaskResult{AgentID: "a1", Failed: true}))
	w.refused("TASK_NOT_OWNED")
	w.last(&refused)
	require.Equal(t, "error", refused.What)
}

// TestARefusedResultStaysRefused: a command that was refused is not accepted when it
// comes again after the agent got the task.
func TestARefusedResultStaysRefused(t *testing.T) {
	w := running(t)
	early := command.TaskResult{AgentID: "a2", Result: raw}
	w.do(command.FinishTask, "early", early)
	w.refused("TASK_NOT_OWNED")
	status := command.TaskReport{AgentID: "a2", Status: "failed"}
	w.do(command.ReportTask, "status", status)
	w.refused("TASK_NOT_OWNED")
	w.leave("a1")
	w.do(command.ReleaseTask, "g", command.AgentGone{AgentID: "a1", Attempt: 1})
	require.Equal(t, "a2", w.state.Holder())
	require.Empty(t, w.do(command.FinishTask, "early", early))
	w.refused("TASK_NOT_OWNED")
	require.Empty(t, w.do(command.ReportTask, "status", status))
	require.False(t, w.state.Done())
}

func TestThreeAgentsMayTry(t *testing.T) {
	w := running(t)
	for attempt := 1; attempt <= 3; attempt++ {
		types := w.do(command.ReleaseTask, fmt.Sprint("g", attempt), command.AgentGone{
			AgentID: w.state.Holder(), Attempt: attempt, Reason: "not_delivered",
		})
		require.Equal(t, event.TaskReleased, types[0])
	}
	w.ended(assignment.StatusFailed, "AGENT_LOST")
}

// TestAnAgentThatLostATaskRests: one that is not reached although it seems to be there
// does not use up the attempts at once.
func TestAnAgentThatLostATaskRests(t *testing.T) {
	lost := func(t *testing.T) *world {
		w := newWorld(t)
		d := forA()
		d.AgentName = "B"
		w.do(command.CreateTask, "c", d)
		require.Equal(t, []event.Type{event.TaskReleased, event.TaskQueued},
			w.do(command.ReleaseTask, "g", command.AgentGone{AgentID: "b1", Attempt: 1, Reason: "not_delivered"}))
		var q event.TaskQueuedData
		w.last(&q)
		require.Equal(t, "released", q.Reason)
		require.Equal(t, assignment.StatusQueued, w.state.Status())
		return w
	}
	t.Run("pause", func(t *testing.T) {
		w := lost(t)
		start := w.now
		require.Equal(t, []event.Type{event.TaskAssigned}, w.due())
		require.Equal(t, w.rules.Pause, w.now.Sub(start))
		require.Empty(t, w.do(command.ReleaseTask, "again", command.AgentGone{AgentID: "b1", Attempt: 1}), "that attempt is over")
		require.Equal(t, 2, w.state.Head().Attempt)
	})
	t.Run("connects anew", func(t *testing.T) {
		w := lost(t)
		w.now = w.now.Add(time.Millisecond)
		w.agent("b1").Since = w.now
		require.Equal(t, []event.Type{event.TaskAssigned}, w.do(command.CheckTask, "d", nil))
	})
	t.Run("never comes", func(t *testing.T) {
		w := lost(t)
		w.leave("b1")
		require.Empty(t, w.due())
		require.Equal(t, []event.Type{event.TaskFinished}, w.due())
		w.ended(assignment.StatusFailed, "AGENT_LOST")
	})
}

func TestTheLeaseIsTheNet(t *testing.T) {
	w := running(t)
	require.Equal(t, w.now.Add(45*time.Second), w.state.Due(w.env()))
	require.Empty(t, w.due(), "an agent that is there keeps its task, however silent it is")
	require.Equal(t, w.now.Add(45*time.Second), w.state.Due(w.env()), "and is looked at again")

	w.now = w.now.Add(5 * time.Second)
	w.do(command.NotifyTask, "n", command.TaskNotification{AgentID: "a1", Message: raw})
	w.agent("a1").Online, w.agent("a1").Away = false, true
	require.Empty(t, w.due(), "one that may come back keeps its task")
	w.agent("a1").Away = false
	require.Equal(t, []event.Type{event.TaskReleased, event.TaskAssigned}, w.due())
	var d event.TaskReleasedData
	require.NoError(t, w.log[len(w.log)-2].Decode(&d))
	require.Equal(t, "agent_lost", d.Reason)
	require.Equal(t, "a1", d.AgentID)
}

func TestARepeatedResultIsRefused(t *testing.T) {
	w := running(t)
	first := command.TaskResult{AgentID: "a1", Result: raw}
	w.do(command.FinishTask, "r", first)
	require.Empty(t, w.do(command.FinishTask, "r", first), "the command may come again")
	require.Nil(t, w.direct)
	require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.FinishTask, "r2", first))
	w.refused("TASK_FINISHED")
	require.Empty(t, w.do(command.ReportTask, "s", command.TaskReport{AgentID: "a1", Status: "completed"}), "agents say both")
	require.Nil(t, w.direct)
	require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.ReportTask, "s2", command.TaskReport{AgentID: "a2", Status: "started"}))
	w.refused("TASK_NOT_OWNED")
}

// TestAStatusFailedEndsTheTask: the result after the status is accepted, a second result is not.
func TestAStatusFailedEndsTheTask(t *testing.T) {
	w := running(t)
	require.Equal(t, []event.Type{event.TaskFinished}, w.do(command.ReportTask, "s", command.TaskReport{AgentID: "a1", Status: "failed", Error: "broken"}))
	require.Equal(t, "broken", w.ended(assignment.StatusFailed, "TASK_EXECUTION_ERROR").Error)
	require.Empty(t, w.do(command.ReportTask, "s", command.TaskReport{AgentID: "a1", Status: "failed", Error: "broken"}))
	for range 2 {
		w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1", Result: raw})
		require.Nil(t, w.direct)
	}
	require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.FinishTask, "r2", command.TaskResult{AgentID: "a1", Result: raw}))
	w.refused("TASK_FINISHED")
	require.Equal(t, "broken", w.state.End().Error)
}

func TestErrorsOfAgentsHaveCodesOfTheCatalogue(t *testing.T) {
	for _, c := range []struct{ word, code, details string }{
		{"", "TASK_EXECUTION_ERROR", ""},
		{"MODEL_BUSY", "MODEL_BUSY", ""},
		{"E_OWN", "TASK_EXECUTION_ERROR", `{"code":"E_OWN"}`},
	} {
		w := running(t)
		w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1", Failed: true, Code: c.word})
		end := w.ended(assignment.StatusFailed, c.code)
		require.Equal(t, fault.Lookup(fault.Code(c.code)).Message, end.Error)
		require.Equal(t, c.details, string(end.Details))
	}
	w := running(t)
	w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1", Failed: true, Code: "E_OWN", Error: "my text", Details: raw, Result: raw})
	end := w.ended(assignment.StatusFailed, "TASK_EXECUTION_ERROR")
	require.Equal(t, "my text", end.Error)
	require.JSONEq(t, string(raw), string(end.Details))
	require.JSONEq(t, string(raw), string(end.Result))
}

func TestCancelAtAnyPoint(t *testing.T) {
	cancel := command.CancelTaskData{ClientID: "c1", Reason: "enough"}
	for name, w := range map[string]*world{
		"running": running(t),
		"queued": func() *world {
			w := newWorld(t)
			w.leave("a1")
			w.leave("a2")
			w.do(command.CreateTask, "c", forA())
			return w
		}(),
		"asking": func() *world {
			w := running(t)
			w.do(command.AskTask, "q", command.TaskQuestion{AgentID: "a1", RequestID: "q1", Message: raw})
			return w
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			w.do(command.CancelTask, "foreign", command.CancelTaskData{ClientID: "c2"})
			w.refused("TASK_NOT_FOUND")
			for i := range 2 {
				require.Equal(t, i == 0, len(w.do(command.CancelTask, "x", cancel)) == 1)
				notice, ok := w.direct.(event.NoticeData)
				require.True(t, ok)
				require.True(t, *notice.OK)
				require.Equal(t, "t1", notice.TaskID)
			}
			require.Contains(t, w.ended(assignment.StatusCancelled, "RUN_CANCELLED").Error, "enough")
			require.Empty(t, w.do(command.CancelTask, "y", cancel))
			w.refused("TASK_FINISHED")
			require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1", Result: raw}))
		})
	}
	w := running(t)
	w.do(command.CancelTask, "x", cancel)
	w.do(command.ReportTask, "s", command.TaskReport{AgentID: "a1", Status: "running"})
	w.refused("TASK_FINISHED")
}

// TestCommandsAboutNoTask: a command about an unknown task is refused with TASK_NOT_FOUND.
func TestCommandsAboutNoTask(t *testing.T) {
	w := newWorld(t)
	w.do(command.MessageTask, "m", command.TaskMessage{ClientID: "c1", Message: raw})
	w.refused("TASK_NOT_FOUND")
	w.do(command.CancelTask, "x", command.CancelTaskData{})
	w.refused("TASK_NOT_FOUND")
	w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1"})
	w.refused("TASK_NOT_FOUND")
	w.do(command.ReportTask, "s", command.TaskReport{AgentID: "a1"})
	w.refused("TASK_NOT_FOUND")
	w.do(command.SpawnTask, "c", command.SpawnChild{AgentID: "a1", ChildID: "x"})
	w.refused("TASK_NOT_FOUND")
	require.Empty(t, w.do(command.ReleaseTask, "g", command.AgentGone{}))
	require.Empty(t, w.do(command.EndChild, "e", event.ChildFinishedData{}))
	require.Empty(t, w.do(command.EndCall, "e2", event.CallFinishedData{}))
	require.Empty(t, w.do(command.CheckTask, "d", nil))
	require.Empty(t, w.log)
	require.True(t, w.state.Due(w.env()).IsZero())
	require.Empty(t, w.state.Pending())
}

func TestBadCommands(t *testing.T) {
	w := newWorld(t)
	c := w.command(command.CreateTask, "c", 1)
	_, err := w.state.Decide(c, w.env())
	require.ErrorIs(t, err, fault.New(fault.InvalidField))
	c.Verb = command.SendMessage
	_, err = w.state.Decide(c, w.env())
	require.ErrorIs(t, err, fault.New(fault.UnknownType))
}

// TestAnAgentThatForgotItsTaskLosesIt: one that comes back and says which tasks it still
// has loses the others at once; not those that it was handed since, and not if it says
// nothing.
func TestAnAgentThatForgotItsTaskLosesIt(t *testing.T) {
	delivered := func(w *world, agent, via string, attempt int) {
		w.do(command.ReportTask, fmt.Sprint("delivered.", attempt), command.TaskReport{
			TaskID: "t1", AgentID: agent, Attempt: attempt, Status: assignment.Delivered, Connection: via,
		})
	}
	w := running(t)
	w.agent("a1").Connection = "c1"
	delivered(w, "a1", "c1", 1)
	for _, silent := range []func(a *assignment.Candidate){
		func(a *assignment.Candidate) { a.Knows = true },                                              // handed on this very connection
		func(a *assignment.Candidate) { a.Connection, a.Knows, a.Joined = "c2", false, w.now },        // it says nothing yet
		func(a *assignment.Candidate) { a.Connection, a.Knows, a.Holds = "c2", true, []string{"t1"} }, // it has it
		func(a *assignment.Candidate) { a.Online, a.Away, a.Holds = false, true, nil },                // it is not there
	} {
		silent(w.agent("a1"))
		require.Empty(t, w.do(command.CheckTask, fmt.Sprint(w.now, w.agent("a1")), nil))
	}
	a := w.agent("a1")
	a.Online, a.Away, a.Connection, a.Knows, a.Holds, a.Since = true, false, "c3", true, []string{"t2"}, w.now.Add(time.Second)
	w.agent("a2").Online = false
	require.Equal(t, []event.Type{event.TaskReleased, event.TaskAssigned}, w.do(command.CheckTask, "back", nil))
	require.Equal(t, "a1", w.state.Holder(), "it may do it again from the beginning")
	require.Equal(t, 2, w.state.Head().Attempt)
	require.Empty(t, w.do(command.CheckTask, "again", nil), "that is not handed to it yet")
	delivered(w, "a1", "c3", 2)
	require.Empty(t, w.do(command.CheckTask, "and again", nil))
}
