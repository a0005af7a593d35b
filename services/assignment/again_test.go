package assignment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// byParticipants are the commands that participants send, which may repeat themselves.
var byParticipants = []id.Name{
	command.MessageTask, command.CancelTask, command.ReportTask, command.NotifyTask, command.AskTask, command.FinishTask,
	command.SpawnTask, command.CallTool,
}

// byClients are those of them that are the same in every attempt.
var byClients = []id.Name{command.MessageTask, command.CancelTask}

// drawRequest names the request of a participant, of which it has few, so that they come again.
func drawRequest(t *rapid.T, k command.Command) string {
	var d struct {
		AgentID  string `json:"agent_id"`
		ClientID string `json:"client_id"`
		Status   string `json:"status"`
	}
	require.NoError(t, k.Decode(&d))
	if !slices.Contains(byParticipants, k.Verb) || d.Status == "delivered" || !rapid.Bool().Draw(t, "named") {
		return ""
	}
	return fmt.Sprintf("%s %s%s %d", k.Verb, d.AgentID, d.ClientID, rapid.IntRange(0, 4).Draw(t, "request"))
}

// carriedOut reports whether the log says that the command's request was carried out.
func (w *world) carriedOut(k command.Command) bool {
	name := k.Request
	if !slices.Contains(byClients, k.Verb) {
		name = fmt.Sprintf("%s/%d", k.Request, w.state.Head().Attempt)
	}
	return k.Request != "" && slices.ContainsFunc(w.log, func(e event.Event) bool { return e.Request == name })
}

// undone checks that a command which repeats another one did nothing itself.
func (c *chaos) undone(t *rapid.T, k command.Command, before int) {
	for _, e := range c.log[before:] {
		require.False(t, e.Request != "" || strings.HasPrefix(e.ID, k.ID+"."), "%s again led to %s", k.Request, e.Type)
	}
	require.True(t, slices.IsSorted(c.again) && (len(c.again) == 0 || c.again[len(c.again)-1] <= uint64(before)), "said again: %v of %d", c.again, before)
}

// says sends a command whose sender calls it request, and returns what it appended.
func (w *world) says(verb id.Name, commandID, request string, data any) []event.Type {
	c := w.command(verb, commandID, data)
	c.Request = request
	types, whole := w.try(c, 1<<30)
	require.True(w.t, whole)
	return types
}

// answers checks which events a repeat is answered with.
func (w *world) answers(want ...event.Type) {
	var got []event.Type
	for _, seq := range w.again {
		got = append(got, w.log[seq-1].Type)
	}
	require.Equal(w.t, want, got)
}

// TestARepeatHasTheStoredOutcome: each request of a participant that comes again, under another
// id of its command, does nothing, and is answered with what the log says.
func TestARepeatHasTheStoredOutcome(t *testing.T) {
	w := running(t)
	n := 0
	twice := func(verb id.Name, request string, data any, first event.Type) {
		t.Helper()
		n++
		require.Contains(t, w.says(verb, fmt.Sprint("x", n), request, data), first)
		require.Empty(t, w.again)
		n++
		require.Empty(t, w.says(verb, fmt.Sprint("x", n), request, data))
	}
	again := func(verb id.Name, request string, data any) {
		t.Helper()
		n++
		require.Empty(t, w.says(verb, fmt.Sprint("x", n), request, data))
	}

	twice(command.ReportTask, "status", command.TaskReport{AgentID: "a1", Status: "started"}, event.TaskReported)
	w.answers()
	twice(command.NotifyTask, "note", command.TaskNotification{AgentID: "a1", Message: raw}, event.TaskNotified)
	w.answers()

	call := command.ToolRequest{AgentID: "a1", Tool: "f"}
	twice(command.CallTool, "call", call, event.CallStarted)
	w.answers() // it runs: the outcome to come answers both
	require.Len(t, w.state.Pending(), 1)
	w.do(command.EndCall, "ended", event.CallFinishedData{CallID: w.state.Pending()[0].CallID, Status: "success", Result: raw})
	again(command.CallTool, "call", call)
	w.answers(event.CallFinished)

	spawn := command.SpawnChild{AgentID: "a1", ChildID: "k1", TargetName: "B"}
	twice(command.SpawnTask, "child", spawn, event.ChildCreated)
	w.answers(event.ChildCreated)
	w.do(command.EndChild, "kid", event.ChildFinishedData{ChildID: "k1", Status: "completed"})
	again(command.SpawnTask, "child", spawn)
	w.answers(event.ChildCreated, event.ChildFinished)
	spawn.Data = raw
	again(command.SpawnTask, "child with other content", spawn)
	w.answers(event.ChildCreated, event.ChildFinished)

	ask := command.TaskQuestion{AgentID: "a1", RequestID: "q", Message: raw}
	twice(command.AskTask, "ask", ask, event.TaskAsked)
	w.answers() // it is open: the answer to come answers both
	message := command.TaskMessage{ClientID: "c1", Message: raw}
	twice(command.MessageTask, "answer", message, event.TaskMessaged)
	w.answers(event.TaskMessaged)
	again(command.AskTask, "ask", ask)
	w.answers(event.TaskMessaged)
	ask.TimeoutMS = 1
	twice(command.AskTask, "ask2", ask, event.TaskAsked)
	w.now = w.now.Add(time.Second)
	w.do(command.CheckTask, "due", nil)
	again(command.AskTask, "ask2", ask)
	w.answers(event.TaskAskExpired)

	twice(command.FinishTask, "result", command.TaskResult{AgentID: "a1", Result: raw}, event.TaskFinished)
	require.Nil(t, w.direct, "it is no second result")
	again(command.CallTool, "call", call)
	w.answers(event.CallFinished)
	again(command.MessageTask, "answer", message)
	w.answers(event.TaskMessaged)
}

// TestACancelIsConfirmedAgain: who repeats it is not told that the task is over.
func TestACancelIsConfirmedAgain(t *testing.T) {
	w := running(t)
	stop := command.CancelTaskData{ClientID: "c1"}
	w.says(command.CancelTask, "x1", "cancel", stop)
	first := w.direct
	require.IsType(t, event.NoticeData{}, first)
	require.Empty(t, w.says(command.CancelTask, "x2", "cancel", stop))
	require.Equal(t, first, w.direct)
	w.says(command.CancelTask, "x3", "another", stop)
	w.refused("TASK_FINISHED")
}

// TestAnotherAttemptAsksAnew: an agent that got the task again numbers its requests from
// the beginning. A command of the earlier attempt that is delivered again does nothing.
func TestAnotherAttemptAsksAnew(t *testing.T) {
	w := running(t)
	w.agents = w.agents[:1]
	w.rules.Pause = 0
	call, spawn := command.ToolRequest{AgentID: "a1", Tool: "f"}, command.SpawnChild{AgentID: "a1", RequestID: "1", ChildID: "k1", TargetName: "A"}
	w.says(command.CallTool, "x1", "1", call)
	w.says(command.SpawnTask, "x2", "2", spawn)
	w.do(command.ReleaseTask, "gone", command.AgentGone{AgentID: "a1", Attempt: 1})
	require.Equal(t, 2, w.state.Head().Attempt)
	require.Equal(t, []string{"k1"}, w.state.Orphans())

	require.Empty(t, w.says(command.CallTool, "x1", "1", call))
	require.Empty(t, w.says(command.SpawnTask, "x2", "2", spawn))
	require.Equal(t, []event.Type{event.CallStarted}, w.says(command.CallTool, "x3", "1", call))
	require.Equal(t, []event.Type{event.ChildCreated}, w.says(command.SpawnTask, "x4", "2", spawn))
	require.Len(t, w.state.Children(), 2)
	child, ok := w.state.Child(spawn)
	require.True(t, ok)
	require.NotEqual(t, "k1", child.TaskID)
	require.Equal(t, w.state.Children()[1], child.TaskID)
	require.Empty(t, w.says(command.SpawnTask, "x5", "2", spawn))
	w.answers(event.ChildCreated)
}
