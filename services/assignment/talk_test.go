package assignment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

func question(requestID string) command.TaskQuestion {
	return command.TaskQuestion{AgentID: "a1", RequestID: requestID, MessageType: "input_request", Message: raw, Options: raw}
}

func answer(messageType string) command.TaskMessage {
	return command.TaskMessage{ClientID: "c1", MessageType: messageType, Message: raw}
}

func TestAQuestionTakesOneAnswer(t *testing.T) {
	w := running(t)
	require.Equal(t, []event.Type{event.TaskAsked}, w.do(command.AskTask, "q", question("q1")))
	require.Equal(t, assignment.StatusWaitingInput, w.state.Status())
	require.Equal(t, "q1", w.state.Question(), "the question has the id of the agent's frame")
	require.Equal(t, w.now.Add(30*time.Second), w.state.Due(w.env()))
	require.Empty(t, w.do(command.AskTask, "q", question("q1")), "a repeated command changes nothing")
	require.Nil(t, w.direct)
	w.do(command.AskTask, "qq", question("q2"))
	w.refused("QUEUE_FULL")

	w.do(command.MessageTask, "m0", command.TaskMessage{ClientID: "c2", MessageType: "input_response", Message: raw})
	w.refused("TASK_NOT_FOUND")
	require.Equal(t, []event.Type{event.TaskMessaged}, w.do(command.MessageTask, "m1", answer("client.message")))
	var d event.TaskMessagedData
	w.last(&d)
	require.Equal(t, "q1", d.InputID)
	require.Equal(t, "c1", d.From)
	require.Equal(t, "a1", d.AgentID)
	require.Equal(t, assignment.StatusRunning, w.state.Status())

	require.Empty(t, w.do(command.MessageTask, "m2", answer("input_response")))
	told := w.refused("INPUT_ANSWERED")
	require.Equal(t, "q1", told.InputID)
	require.Equal(t, "c1", told.AnsweredBy)
	require.Empty(t, w.do(command.MessageTask, "m1", answer("client.message")), "a repeated command changes nothing")
	require.Nil(t, w.direct)

	require.Equal(t, []event.Type{event.TaskMessaged}, w.do(command.MessageTask, "m3", answer("")), "other messages are no answers")
	var other event.TaskMessagedData
	w.last(&other)
	require.Empty(t, other.InputID)
	require.Equal(t, []event.Type{event.TaskAsked}, w.do(command.AskTask, "q3", question("q1")), "ids of frames may come again")
}

func TestAQuestionExpires(t *testing.T) {
	w := running(t)
	q := question("")
	q.TimeoutMS = 2000
	w.do(command.AskTask, "q", q)
	input := w.state.Question()
	require.Regexp(t, `^input_[0-9a-f]{20}$`, input)
	start := w.now
	require.Equal(t, []event.Type{event.TaskAskExpired}, w.due())
	require.Equal(t, 2*time.Second, w.now.Sub(start))
	require.Equal(t, assignment.StatusRunning, w.state.Status(), "the task goes on")
	w.do(command.MessageTask, "m", answer("input_response"))
	require.Equal(t, input, w.refused("INPUT_EXPIRED").InputID)
	w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1"})
	w.ended(assignment.StatusCompleted, "")
	w.do(command.MessageTask, "m2", answer("input_response"))
	w.refused("TASK_FINISHED")
}

func TestAQuestionEndsWithItsAgent(t *testing.T) {
	w := running(t)
	w.do(command.AskTask, "q", question("q1"))
	w.leave("a1")
	w.do(command.ReleaseTask, "g", command.AgentGone{AgentID: "a1", Attempt: 1})
	require.Empty(t, w.state.Question())
	require.Equal(t, assignment.StatusRunning, w.state.Status())
	w.do(command.MessageTask, "m", answer("input_response"))
	w.refused("INPUT_EXPIRED")
}

func TestOnlyWhoHasTheTaskSpeaks(t *testing.T) {
	said := func(w *world, agentID, code string) {
		n := fmt.Sprint(len(w.log), agentID)
		require.Empty(w.t, w.do(command.NotifyTask, n+"n", command.TaskNotification{AgentID: agentID, Message: raw}))
		w.refused(code)
		require.Empty(w.t, w.do(command.AskTask, n+"q", command.TaskQuestion{AgentID: agentID, Message: raw}))
		w.refused(code)
		require.Empty(w.t, w.do(command.SpawnTask, n+"s", command.SpawnChild{AgentID: agentID, ChildID: "k"}))
		w.refused(code)
		require.Empty(w.t, w.do(command.CallTool, n+"c", command.ToolRequest{AgentID: agentID}))
		w.refused(code)
	}
	w := running(t)
	said(w, "a2", "TASK_NOT_OWNED")
	said(w, "", "TASK_NOT_OWNED")
	w.do(command.FinishTask, "r", command.TaskResult{AgentID: "a1"})
	said(w, "a1", "TASK_FINISHED")
	said(w, "a2", "TASK_NOT_OWNED")
}

// TestWhoIsRefusedHasNoEffect: not either when the agent could be given the task on
// the same occasion.
func TestWhoIsRefusedHasNoEffect(t *testing.T) {
	w := newWorld(t)
	w.leave("b1")
	d := forA()
	d.AgentName = "B"
	w.do(command.CreateTask, "c", d)
	w.agent("b1").Online = true
	require.Empty(t, w.do(command.CallTool, "k", command.ToolRequest{AgentID: "b1", Tool: "f"}))
	w.refused("TASK_NOT_OWNED")
	require.Empty(t, w.do(command.NotifyTask, "n", command.TaskNotification{AgentID: "b1", Message: raw}))
	w.refused("TASK_NOT_OWNED")
	require.Equal(t, []event.Type{event.TaskRefused, event.TaskAssigned}, w.do(command.FinishTask, "r", command.TaskResult{AgentID: "b1"}))
	w.refused("TASK_NOT_OWNED")
	require.False(t, w.state.Done())
}

func TestAQuestionAfterOneThatIsOver(t *testing.T) {
	w := running(t)
	w.do(command.AskTask, "q1", question("q1"))
	w.now = w.now.Add(time.Minute)
	require.Equal(t, []event.Type{event.TaskAskExpired, event.TaskAsked}, w.do(command.AskTask, "q2", question("q2")))
	require.Nil(t, w.direct)
	require.Equal(t, "q2", w.state.Question())
}

func TestWhatIsDelivered(t *testing.T) {
	w := newWorld(t)
	w.leave("a1")
	w.leave("a2")
	w.do(command.CreateTask, "c", forA())
	delivered := command.TaskReport{AgentID: "a1", Status: assignment.Delivered}
	require.Empty(t, w.do(command.ReportTask, "d0", delivered), "nobody has it")
	require.Nil(t, w.direct)
	w.do(command.MessageTask, "m", answer(""))
	require.Empty(t, w.state.Mail(), "nobody to be told")

	w.agent("a1").Online, w.agent("a2").Online = true, true
	w.do(command.CheckTask, "came", nil)
	require.NotNil(t, w.state.Undelivered())
	require.Len(t, w.state.Mail(), 1)
	require.Equal(t, []event.Type{event.TaskReported}, w.do(command.ReportTask, "d1", delivered))
	require.Nil(t, w.state.Undelivered())
	require.Empty(t, w.state.Mail())
	require.Empty(t, w.do(command.ReportTask, "d2", delivered), "said before")

	w.do(command.ReleaseTask, "g", command.AgentGone{AgentID: "a1", Attempt: 1})
	require.Equal(t, "a2", w.state.Holder())
	require.Equal(t, "a2", w.state.Undelivered().AgentID)
	require.Len(t, w.state.Mail(), 1, "the next agent is told what the client said")
	require.Empty(t, w.do(command.ReportTask, "d3", delivered), "that attempt is over")
	require.Empty(t, w.do(command.ReportTask, "d4", command.TaskReport{AgentID: "a2", Attempt: 1, Status: assignment.Delivered}))
	require.NotNil(t, w.state.Undelivered())
	for i := range 40 {
		w.do(command.MessageTask, fmt.Sprint("m", i), answer(""))
	}
	require.Len(t, w.state.Mail(), 32)
}

func TestChildren(t *testing.T) {
	w := newWorld(t)
	d := forA()
	d.Depth, d.RootID, d.Chain, d.Session = 1, "root", []string{"A"}, "s"
	w.do(command.CreateTask, "c", d)
	spawn := command.SpawnChild{
		AgentID: "a1", RequestID: "f1", ChildID: "k1", TargetName: "A", TargetID: "a2", TaskType: "x", Description: "d", Data: raw, TimeoutMS: 5,
	}
	require.Equal(t, []event.Type{event.ChildCreated}, w.do(command.SpawnTask, "s", spawn))
	require.Empty(t, w.do(command.SpawnTask, "s", spawn), "a repeated command changes nothing")
	require.Empty(t, w.do(command.SpawnTask, "s2", spawn), "nor does a second child of the same id")
	child, ok := w.state.Child(spawn)
	require.True(t, ok)
	require.JSONEq(t, `{"id":"a1","name":"A"}`, string(child.Caller))
	child.Caller = nil
	require.Equal(t, command.NewTask{
		TaskID: "k1", RequestID: "f1", ClientID: "c1", AgentID: "a2", AgentName: "A", TaskType: "x", Data: raw, TimeoutMS: 5,
		ParentID: "t1", Depth: 2, RootID: "root", Chain: []string{"A", "A"}, Session: "s",
	}, child, "an agent may occur again below itself")
	require.Equal(t, []string{"k1"}, w.state.Children())
	require.Empty(t, w.state.Orphans())

	for _, wrong := range []string{"", "t1"} {
		spawn.ChildID = wrong
		w.do(command.SpawnTask, "w"+wrong, spawn)
		w.refused(string(fault.InvalidField))
	}
	spawn.ChildID = "k2"
	_, ok = w.state.Child(spawn)
	require.False(t, ok)
	w.do(command.SpawnTask, "s3", spawn)
	end := event.ChildFinishedData{ChildID: "k1", Status: "completed", Result: raw}
	require.Equal(t, []event.Type{event.ChildFinished}, w.do(command.EndChild, "e", end))
	require.Empty(t, w.do(command.EndChild, "e", end))
	require.Empty(t, w.do(command.EndChild, "e2", end), "a child ends once")
	require.Equal(t, []string{"k2"}, w.state.Children())

	w.leave("a1")
	w.do(command.ReleaseTask, "g", command.AgentGone{AgentID: "a1", Attempt: 1})
	require.Equal(t, []string{"k2"}, w.state.Orphans(), "nobody waits for the child of a lost agent")
	spawn.AgentID, spawn.ChildID = "a2", "k3"
	w.do(command.SpawnTask, "s4", spawn)
	require.Equal(t, []string{"k2"}, w.state.Orphans())
	w.do(command.CancelTask, "x", command.CancelTaskData{})
	require.Equal(t, []string{"k2", "k3"}, w.state.Orphans())
	w.do(command.EndChild, "e3", event.ChildFinishedData{ChildID: "k2", Status: "cancelled"})
	var d2 event.ChildFinishedData
	w.last(&d2)
	require.Equal(t, "a1", d2.AgentID, "the head names who asked for the child")
	require.Equal(t, []string{"k3"}, w.state.Orphans())
}

// TestAChildOverTheQuota: the state says which child a command makes and in whose quota it counts, and refuses it for the
// reason that it is handed. A repeat and a command that is refused anyway take no place.
func TestAChildOverTheQuota(t *testing.T) {
	w := newWorld(t)
	w.do(command.CreateTask, "c", forA())
	spawn := func(id string, d command.SpawnChild) command.Command { return w.command(command.SpawnTask, id, d) }
	kid := spawn("s1", command.SpawnChild{AgentID: "a1", ChildID: "k1"})
	root, child, ok := w.state.Spawning(kid, w.rules)
	require.True(t, ok)
	require.Equal(t, []string{"t1", "k1"}, []string{root, child})
	env := w.env()
	env.Refused = fault.Newf(fault.QuotaExceeded, "Enough.")
	got, err := w.state.Decide(kid, env)
	require.NoError(t, err)
	require.Empty(t, got.Facts)
	require.Equal(t, []string{"QUOTA_EXCEEDED", "Enough."}, []string{refusalOf(t, got.Direct).Code, refusalOf(t, got.Direct).Message})
	require.Len(t, w.do(command.SpawnTask, "s1", command.SpawnChild{AgentID: "a1", ChildID: "k1"}), 1)
	for _, d := range []command.SpawnChild{{AgentID: "a1", ChildID: "k1"}, {AgentID: "stranger", ChildID: "k2"}, {AgentID: "a1", ChildID: "t1"}} {
		_, _, ok := w.state.Spawning(spawn("s2", d), w.rules)
		require.False(t, ok, "%+v", d)
	}
	got, err = w.state.Decide(kid, env)
	require.NoError(t, err)
	require.Nil(t, got.Direct, "a repeat is not refused")
}

func refusalOf(t *testing.T, d event.Data) event.CommandRefusedData {
	t.Helper()
	r, ok := d.(event.CommandRefusedData)
	require.True(t, ok)
	return r
}

func TestChildrenAreBounded(t *testing.T) {
	w := newWorld(t)
	d := forA()
	d.Depth = 15
	w.do(command.CreateTask, "c", d)
	for i := range assignment.MaxOpen + 1 {
		require.Equal(t, i < assignment.MaxOpen, len(w.do(command.SpawnTask, fmt.Sprint("s", i), command.SpawnChild{AgentID: "a1", ChildID: fmt.Sprint("k", i)})) == 1)
	}
	w.refused("QUEUE_FULL")
	w.do(command.EndChild, "e", event.ChildFinishedData{ChildID: "k3", Status: "completed"})
	require.Len(t, w.do(command.SpawnTask, "again", command.SpawnChild{AgentID: "a1", ChildID: "again"}), 1)

	d.Depth = 16
	w = newWorld(t)
	w.do(command.CreateTask, "c", d)
	w.do(command.SpawnTask, "s", command.SpawnChild{AgentID: "a1", ChildID: "k"})
	w.refused("TASK_TOO_DEEP")
	require.False(t, w.state.Done())
	d.Depth = 17
	w = newWorld(t)
	w.do(command.CreateTask, "c", d)
	w.ended(assignment.StatusFailed, "TASK_TOO_DEEP")
}

func TestCalls(t *testing.T) {
	w := running(t)
	w.tool = assignment.Tool{ServerName: "Calc", Idempotent: true}
	ask := command.ToolRequest{AgentID: "a1", RequestID: "f1", Kind: "service", Server: "calc", Tool: "add", TimeoutMS: 900}
	require.Equal(t, []event.Type{event.CallStarted}, w.do(command.CallTool, "k", ask))
	require.Empty(t, w.do(command.CallTool, "k", ask), "a repeated command changes nothing")
	require.Len(t, w.state.Pending(), 1)
	intent := w.state.Pending()[0]
	require.Regexp(t, `^call_[0-9a-f]{20}$`, intent.CallID)
	require.Equal(t, event.CallStartedData{
		TaskHead: w.state.Head(), CallID: intent.CallID, CallRequest: "f1", Kind: "service", Server: "calc", ServerName: "Calc",
		Tool: "add", Arguments: []byte("{}"), Idempotent: true, TimeoutMS: 900,
	}, intent)

	note := event.CallNotifiedData{CallID: intent.CallID, Message: "half"}
	require.Equal(t, []event.Type{event.CallNotified}, w.do(command.NotifyCall, "n", note))
	require.Empty(t, w.do(command.NotifyCall, "n", note))
	end := event.CallFinishedData{CallID: intent.CallID, Status: "perhaps", Tool: "other"}
	_, err := w.state.Decide(w.command(command.EndCall, "e", end), w.env())
	require.ErrorIs(t, err, fault.New(fault.InvalidField))
	end.Status = "success"
	require.Equal(t, []event.Type{event.CallFinished}, w.do(command.EndCall, "e", end))
	var d event.CallFinishedData
	w.last(&d)
	require.Equal(t, "add", d.Tool)
	require.Equal(t, "f1", d.CallRequest)
	require.Equal(t, "Calc", d.ServerName)
	require.Empty(t, w.do(command.EndCall, "e2", end), "one outcome")
	require.Empty(t, w.state.Pending())
	w.do(command.NotifyCall, "n2", note)
	w.refused("NOT_FOUND")
}

func TestCallsEndWithTheirAgent(t *testing.T) {
	w := running(t)
	ask := command.ToolRequest{AgentID: "a1", Kind: "mcp", Server: "fs", Tool: "read"}
	w.do(command.CallTool, "k", ask)
	first := w.state.Pending()[0].CallID
	w.leave("a1")
	w.do(command.ReleaseTask, "g", command.AgentGone{AgentID: "a1", Attempt: 1})
	require.Empty(t, w.state.Pending(), "nobody waits for the calls of a lost agent")
	require.Equal(t, []event.Type{event.CallFinished}, w.do(command.EndCall, "e", event.CallFinishedData{CallID: first, Status: "success"}))
	var d event.CallFinishedData
	w.last(&d)
	require.Equal(t, 1, d.Attempt, "the outcome is that of the first attempt")
	require.NotNil(t, w.state.Undelivered(), "the second agent was not heard of by that")

	ask.AgentID = "a2"
	w.do(command.CallTool, "k2", ask)
	second := w.state.Pending()[0].CallID
	w.do(command.CancelTask, "x", command.CancelTaskData{})
	require.Empty(t, w.state.Pending())
	require.Empty(t, w.do(command.NotifyCall, "n", event.CallNotifiedData{CallID: second}))
	w.refused("TASK_FINISHED")
	require.Equal(t, []event.Type{event.CallFinished}, w.do(command.EndCall, "e2", event.CallFinishedData{CallID: second, Status: "unknown"}),
		"what was done is recorded all the same")
}

func TestCallsAreBounded(t *testing.T) {
	w := running(t)
	for i := range assignment.MaxOpen + 1 {
		require.Equal(t, i < assignment.MaxOpen, len(w.do(command.CallTool, fmt.Sprint("k", i), command.ToolRequest{AgentID: "a1"})) == 1)
	}
	w.refused("QUEUE_FULL")
	one := w.state.Pending()[0].CallID
	for i := range assignment.MaxNotes {
		require.Len(t, w.do(command.NotifyCall, fmt.Sprint("n", i), event.CallNotifiedData{CallID: one}), 1)
	}
	require.Empty(t, w.do(command.NotifyCall, "flood", event.CallNotifiedData{CallID: one}))
	w.refused("RATE_LIMITED")
	require.Len(t, w.do(command.NotifyCall, "other", event.CallNotifiedData{CallID: w.state.Pending()[1].CallID}), 1, "others are not hurt")
}

// returned is a1, which was handed the task on connection c1 and is back on c2 without a
// word about it.
func returned(t *testing.T) *world {
	t.Helper()
	w := running(t)
	w.agent("a1").Connection = "c1"
	w.delivered("a1", "c1", 1)
	w.now = w.now.Add(1500 * time.Millisecond)
	a := w.agent("a1")
	a.Connection, a.Joined, a.Since = "c2", w.now, w.now
	return w
}

func (w *world) delivered(agent, via string, attempt int) {
	w.do(command.ReportTask, fmt.Sprint("delivered.", attempt), command.TaskReport{
		TaskID: "t1", AgentID: agent, Attempt: attempt, Status: assignment.Delivered, Connection: via,
	})
}

func (w *world) doing(commandID, status string) []event.Type {
	return w.do(command.ReportTask, commandID, command.TaskReport{TaskID: "t1", AgentID: "a1", Status: status})
}

// TestAnAgentThatIsBackAndSilentGetsItsTaskAgain: the task goes back to the same agent, although
// another one is free and this one accepts no others. A late report of the agent counts once.
func TestAnAgentThatIsBackAndSilentGetsItsTaskAgain(t *testing.T) {
	w := returned(t)
	require.Empty(t, w.do(command.CheckTask, "at once", nil))
	w.replyTo = subject.ReplyTo(id.MustName("gw"), id.MustName("c1"))
	require.Equal(t, []event.Type{event.TaskReported}, w.doing("late", "running"), "which it said before it was gone")
	w.replyTo = ""
	require.Equal(t, w.now.Add(w.rules.Silence), w.state.Due(w.env()))
	w.agent("a1").Status = command.StatusBusy
	require.Equal(t, []event.Type{event.TaskReleased, event.TaskAssigned}, w.due())
	require.Equal(t, []string{"a1", "2"}, []string{w.state.Holder(), fmt.Sprint(w.state.Head().Attempt)})
	w.delivered("a1", "c2", 2)
	w.now = w.now.Add(w.rules.Silence + time.Second)
	require.Empty(t, w.do(command.CheckTask, "handed on c2", nil))

	// It had worked on all the time: the result of the first attempt is the task's.
	require.Equal(t, []event.Type{event.TaskFinished}, w.do(command.FinishTask, "r1", command.TaskResult{TaskID: "t1", AgentID: "a1", Result: raw}))
	require.Equal(t, []event.Type{event.TaskRefused}, w.do(command.FinishTask, "r2", command.TaskResult{TaskID: "t1", AgentID: "a1", Result: raw}))
	w.refused("TASK_FINISHED")
	require.Equal(t, 2, w.ended("completed", "").Attempt)
}

// TestAWordAboutTheTaskKeepsIt: an agent that is back and says something has it.
func TestAWordAboutTheTaskKeepsIt(t *testing.T) {
	for name, word := range map[string]func(w *world){
		"a status": func(w *world) { w.doing("s", "running") },
		"a message": func(w *world) {
			w.do(command.NotifyTask, "n", command.TaskNotification{TaskID: "t1", AgentID: "a1", Message: raw})
		},
		"a question": func(w *world) {
			w.do(command.AskTask, "q", command.TaskQuestion{TaskID: "t1", AgentID: "a1", Message: raw, TimeoutMS: 3_600_000})
		},
		"its list of tasks": func(w *world) {
			a := w.agent("a1")
			a.Knows, a.Holds = true, []string{"t1"}
		},
	} {
		w := returned(t)
		w.now = w.now.Add(time.Second)
		w.replyTo = subject.ReplyTo(id.MustName("gw"), id.MustName("c2"))
		word(w)
		w.replyTo = ""
		w.now = w.now.Add(w.rules.Silence)
		require.Empty(t, w.do(command.CheckTask, "due", nil), name)
		require.Equal(t, 1, w.state.Head().Attempt, name)
	}
}

// TestTheLastAttemptIsNotTakenForSilence: an agent on a bad line that works on has the task
// until its time is over.
func TestTheLastAttemptIsNotTakenForSilence(t *testing.T) {
	w := returned(t)
	for attempt := 2; attempt <= w.rules.Tries; attempt++ {
		require.Equal(t, []event.Type{event.TaskReleased, event.TaskAssigned}, w.due())
		w.delivered("a1", fmt.Sprint("c", attempt), attempt)
		w.now = w.now.Add(time.Second)
		a := w.agent("a1")
		a.Connection, a.Joined, a.Since = fmt.Sprint("c", attempt+1), w.now, w.now
	}
	w.now = w.now.Add(2 * w.rules.Silence)
	require.Empty(t, w.do(command.CheckTask, "due", nil))
	require.Equal(t, []event.Type{event.TaskFinished}, w.do(command.FinishTask, "r", command.TaskResult{TaskID: "t1", AgentID: "a1", Result: raw}))
}

// TestASilentAgentThatIsGoneAgain: then another gets the task.
func TestASilentAgentThatIsGoneAgain(t *testing.T) {
	w := returned(t)
	w.now = w.now.Add(w.rules.Silence)
	types, whole := w.try(w.command(command.CheckTask, "due", nil), 1) // the service dies before the task is given on
	require.False(t, whole)
	require.Equal(t, []event.Type{event.TaskReleased}, types)
	w.leave("a1")
	require.Equal(t, []event.Type{event.TaskAssigned}, w.do(command.CheckTask, "due2", nil))
	require.Equal(t, "a2", w.state.Holder())
}
