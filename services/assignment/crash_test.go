package assignment_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
)

// script is a task with everything in it: a lost agent, a question, a child, a call,
// late and foreign results.
func script(step func(verb id.Name, data any), w *world) {
	step(command.CreateTask, forA())
	step(command.ReportTask, command.TaskReport{AgentID: "a1", Status: "started"})
	step(command.NotifyTask, command.TaskNotification{AgentID: "a1", Message: raw})
	step(command.SpawnTask, command.SpawnChild{AgentID: "a1", ChildID: "k0"})
	w.leave("a1")
	step(command.ReleaseTask, command.AgentGone{AgentID: "a1", Attempt: 1})
	step(command.FinishTask, command.TaskResult{AgentID: "a1", Result: raw})
	step(command.AskTask, command.TaskQuestion{AgentID: "a2", RequestID: "q", Message: raw})
	step(command.MessageTask, answer("input_response"))
	step(command.MessageTask, answer("input_response"))
	step(command.AskTask, command.TaskQuestion{AgentID: "a2", RequestID: "q", Message: raw, TimeoutMS: 10})
	w.now = w.now.Add(time.Second)
	step(command.CheckTask, nil)
	step(command.SpawnTask, command.SpawnChild{AgentID: "a2", ChildID: "k1"})
	step(command.EndChild, event.ChildFinishedData{ChildID: "k1", Status: "completed"})
	step(command.CallTool, command.ToolRequest{AgentID: "a2", Tool: "f"})
	for _, c := range w.state.Pending() {
		step(command.NotifyCall, event.CallNotifiedData{CallID: c.CallID})
		step(command.EndCall, event.CallFinishedData{CallID: c.CallID, Status: "success"})
	}
	step(command.ReportTask, command.TaskReport{AgentID: "a2", Status: "failed", Error: "no"})
	step(command.FinishTask, command.TaskResult{AgentID: "a2", Failed: true})
	step(command.FinishTask, command.TaskResult{AgentID: "a2", Failed: true})
	step(command.CancelTask, command.CancelTaskData{})
	step(command.EndChild, event.ChildFinishedData{ChildID: "k0", Status: "cancelled"})
}

// TestAServiceMayDieAfterAnyEvent: whichever event a service dies after, the command
// that comes again makes the same log and gives the same answer; and so does every
// command that comes twice.
func TestAServiceMayDieAfterAnyEvent(t *testing.T) {
	run := func(dies, twice int) (*world, []event.Data) {
		w := newWorld(t)
		var directs []event.Data
		n := 0
		script(func(verb id.Name, data any) {
			n++
			c := w.command(verb, fmt.Sprint("c", n), data)
			if left := dies - len(w.log); left >= 0 {
				w.try(c, left)
			}
			if n == twice {
				w.try(c, 1<<30)
			}
			_, whole := w.try(c, 1<<30)
			require.True(t, whole)
			directs = append(directs, w.direct)
		}, w)
		return w, directs
	}
	whole, directs := run(-1, 0)
	require.Len(t, whole.log, 21, "everything of the script has its effect")
	require.True(t, whole.state.Done())
	for dies := range whole.log {
		w, same := run(dies, 0)
		require.Equal(t, whole.log, w.log, "died after %d events", dies)
		require.Equal(t, directs, same, "died after %d events", dies)
		require.Equal(t, whole.state, w.state)
	}
	for twice := range directs {
		w, same := run(-1, twice+1)
		require.Equal(t, whole.log, w.log, "command %d came twice", twice+1)
		require.Equal(t, directs, same)
	}
}

// TestApplyRefusesInvalidEvents: a log does not begin in the middle, and data are
// what their type says. Types of later versions are passed over.
func TestApplyRefusesInvalidEvents(t *testing.T) {
	var s assignment.State
	e, err := event.New(taskLog, "x", "test", time.Now(), event.TaskQueuedData{})
	require.NoError(t, err)
	require.ErrorContains(t, s.Apply(e), "never created")
	e.Type = "task.later"
	require.NoError(t, s.Apply(e))
	e.Type, e.Data = event.TaskCreated, json.RawMessage(`[]`)
	require.ErrorContains(t, s.Apply(e), "task.created")
}

// FuzzApply: whatever a log holds, nothing panics, the first end stays, and the state
// can be asked and decided with.
func FuzzApply(f *testing.F) {
	w := newWorld(f)
	n := 0
	script(func(verb id.Name, data any) {
		n++
		w.do(verb, fmt.Sprint("c", n), data)
	}, w)
	var seed bytes.Buffer
	for _, e := range w.log {
		fmt.Fprintf(&seed, "%s %s\n", e.Type, e.Data)
	}
	f.Add(seed.Bytes())
	f.Add([]byte("task.created {}\ntask.assigned {\"agent_id\":\"a1\",\"attempt\":-1}\ntask.asked {\"timeout_ms\":-9}\ntask.released {}"))
	f.Add([]byte("call.notified {}\ntask.created {\"queue_ms\":9223372036854775807}\ntask.finished {}\ntask.finished {\"status\":\"x\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s assignment.State
		var end *event.TaskFinishedData
		now := w.now
		for i, line := range bytes.Split(data, []byte("\n")) {
			kind, body, _ := bytes.Cut(line, []byte(" "))
			e := event.Event{ID: fmt.Sprint(i % 7), Type: event.Type(kind), Time: now, Sequence: uint64(i + 1), Data: body}
			_ = s.Apply(e) // an error is an answer
			now = now.Add(time.Second)
			if end != nil {
				require.Same(t, end, s.End())
			}
			end = s.End()
		}
		useAll(t, &s, w.env())
	})
}

// useAll asks the state everything, and decides every kind of command with it.
func useAll(t *testing.T, s *assignment.State, env assignment.Env) {
	s.View()
	s.Undelivered()
	s.Mail()
	s.Question()
	s.Children()
	s.Orphans()
	s.Child(command.SpawnChild{ChildID: "k1"})
	require.Equal(t, s.Done() || s.Created.IsZero(), s.Due(env).IsZero())
	for _, p := range s.Pending() {
		require.False(t, s.Done(), p.CallID)
	}
	w := &world{t: t, now: env.Now}
	for verb := range effects {
		c := w.command(verb, "fuzz", map[string]any{"agent_id": "a1", "child_id": "k1", "call_id": "x", "status": "error"})
		_, err := s.Decide(c, env)
		require.NoError(t, err)
	}
}
