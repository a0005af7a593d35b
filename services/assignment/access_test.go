package assignment_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// sent has a principal send a command about the task.
func (w *world) sent(who access.Person, verb id.Name, commandID string, data any, change func(*command.Command)) []event.Type {
	c := w.command(verb, commandID, data)
	c.Principal, c.Operator = who.Subject, who.Operator
	if change != nil {
		change(&c)
	}
	types, whole := w.try(c, 1<<30)
	require.True(w.t, whole)
	return types
}

// TestWhoMayStopATask: who does not see a task cannot tell its agent anything and cannot cancel it. To them it does not exist. An
// agent tells of the task that it has, also if it is of another owner.
func TestWhoMayStopATask(t *testing.T) {
	said, stopped := command.TaskMessage{Message: json.RawMessage(`"x"`)}, command.CancelTaskData{}
	for _, c := range []struct {
		who        access.Person
		owner, see string
		origin     bool // it follows from a command of the person elsewhere
		may        bool
	}{
		{who: access.Person{Subject: "alice"}, owner: "alice", may: true},
		{who: access.Person{Subject: "bob"}, owner: "alice"},
		{who: access.Person{Subject: "bob"}, owner: "alice", see: access.Tenant, may: true},
		{who: access.Person{Subject: "bob"}, owner: "alice", origin: true, may: true},
		{who: access.Person{Subject: "robot"}, owner: "alice"},
		{who: access.Person{Subject: "robot"}, owner: "robot", may: true}, // an agent that asked for it outside of any task
		{who: access.Person{Subject: "eve", Operator: true}, owner: "alice", may: true},
		{who: access.Person{Subject: "bob"}, owner: "", may: true}, // of an earlier version
		{who: access.Person{}, owner: "alice", may: true},          // a service
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			w := newWorld(t)
			w.rules.Access.Default.See = c.see
			change := func(x *command.Command) {
				if c.origin {
					x.Origin = &event.Proof{}
				}
			}
			w.sent(access.Person{Subject: c.owner}, command.CreateTask, "c", forA(), nil)
			robot := access.Person{Subject: "robot"}
			require.Equal(t, []event.Type{event.TaskReported}, w.sent(robot, command.ReportTask, "s", command.TaskReport{AgentID: "a1", Status: "running"}, nil))
			require.Equal(t, []event.Type{event.TaskNotified}, w.sent(robot, command.NotifyTask, "n", command.TaskNotification{AgentID: "a1", Message: said.Message}, nil))
			for verb, data := range map[id.Name]any{command.MessageTask: said, command.CancelTask: stopped} {
				types := w.sent(c.who, verb, verb.String(), data, change)
				require.Equal(t, c.may, len(types) > 0, "%s", verb)
				if !c.may {
					require.Equal(t, event.CommandRefusedData{
						CommandID: verb.String(), Code: string(fault.TaskNotFound), Message: "This task does not exist. Check its id.",
					}, w.direct)
				}
				if verb == command.CancelTask {
					break
				}
			}
		})
	}
}

// TestWhoMayAnswerAnAgent: who sees a task does not for that reason answer the question of its agent.
func TestWhoMayAnswerAnAgent(t *testing.T) {
	for _, c := range []struct {
		who    access.Person
		answer string
		may    bool
	}{
		{access.Person{Subject: "alice"}, "", true},
		{access.Person{Subject: "bob"}, "", false},
		{access.Person{Subject: "bob"}, access.Asker, false},
		{access.Person{Subject: "alice"}, access.Asker, true},
		{access.Person{Subject: "bob"}, access.Tenant, true},
		{access.Person{Subject: "eve", Operator: true}, "", true},
	} {
		w := newWorld(t)
		w.rules.Access.Default = access.Settings{See: access.Tenant, Answer: c.answer}
		w.do(command.CreateTask, "c", forA())
		w.do(command.AskTask, "q", command.TaskQuestion{AgentID: "a1", RequestID: "q1", Message: json.RawMessage(`"which?"`)})
		types := w.sent(c.who, command.MessageTask, "m", command.TaskMessage{Message: json.RawMessage(`"red"`)}, nil)
		require.Equal(t, c.may, len(types) > 0, "%+v", c)
		if !c.may {
			require.Equal(t, string(fault.Forbidden), w.direct.(event.CommandRefusedData).Code)
		}
	}
}
