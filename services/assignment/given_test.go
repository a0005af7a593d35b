package assignment_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// ofJob returns a world in which a1 has a task that is a job of a session, and asks.
func ofJob(t *testing.T, kind id.Kind, session string) *world {
	t.Helper()
	w := newWorld(t)
	w.do(command.CreateTask, "create", command.NewTask{TaskID: "t1", AgentName: "A", Data: raw, Session: session, Kind: kind, RunID: "r1"})
	require.Equal(t, []event.Type{event.TaskAsked}, w.do(command.AskTask, "q", question("q1")))
	return w
}

// given is an answer that the session hands on.
func (w *world) given(commandID string, message string, change func(*command.Command)) command.Command {
	c := w.command(command.MessageTask, commandID, command.TaskMessage{
		TaskID: "t1", MessageType: command.TypeInputResponse, Message: json.RawMessage(message), Asked: 3,
		Given: &event.GivenAnswer{InputID: "ask_1", Decision: event.DecisionAnswer, ClientID: "phone", Segment: "s2"},
	})
	c.Principal = "ann"
	c.Origin = &event.Proof{Service: "pipeline", Verb: "answer", Key: "s1", Principal: "ann", Data: json.RawMessage(`{"input_id":"ask_1","approved":true,"message":"<red>"}`)}
	if change != nil {
		change(&c)
	}
	return c
}

// TestAnswersOfTheJobsLog: the first one counts, with how it was given. A later one is told which.
func TestAnswersOfTheJobsLog(t *testing.T) {
	w := ofJob(t, "", "s1")
	types, _ := w.try(w.given("a1", `"\u003cred\u003e"`, nil), 1<<30)
	require.Equal(t, []event.Type{event.TaskMessaged}, types)
	var d event.TaskMessagedData
	w.last(&d)
	require.Equal(t, []string{"q1", "ann", "", "a1"}, []string{d.InputID, d.By, d.From, d.MessageID})
	require.Equal(t, &event.GivenAnswer{InputID: "ask_1", Decision: event.DecisionAnswer, ClientID: "phone", Segment: "s2"}, d.Given)
	types, _ = w.try(w.given("a1", `"<red>"`, nil), 1<<30)
	require.Empty(t, types, "a repeat")
	require.Nil(t, w.direct)
	types, _ = w.try(w.given("a2", `"<red>"`, nil), 1<<30)
	require.Empty(t, types)
	late := w.refused("INPUT_ANSWERED")
	require.Equal(t, []string{"ask_1", "ann", "phone", event.DecisionAnswer}, []string{late.InputID, late.AnsweredBy, late.AnsweredOn, late.Decision})

	require.Equal(t, []event.Type{event.TaskAsked}, w.do(command.AskTask, "again", question("q1")), "ids of questions may come again")
	types, _ = w.try(w.given("a3", `"<red>"`, nil), 1<<30)
	require.Empty(t, types, "it answers the question that was asked")
	w.refused("INPUT_NOT_FOUND")
}

// TestForgedAnswersAreRefused: an answer says what the signed one says, in the log whose job the task is.
func TestForgedAnswersAreRefused(t *testing.T) {
	member, err := id.MemberAgent(id.EntityFromExternal("s1"), "Coder")
	require.NoError(t, err)
	for name, change := range map[string]func(*command.Command){
		"other words":     func(c *command.Command) { c.Origin.Data = json.RawMessage(`{"input_id":"ask_1","message":"blue"}`) },
		"another session": func(c *command.Command) { c.Origin.Key = "s2" },
		"another question": func(c *command.Command) {
			c.Origin.Data = json.RawMessage(`{"input_id":"ask_2","approved":true,"message":"<red>"}`)
		},
		"no words that are known": func(c *command.Command) { c.Origin.Data, c.Origin.SHA256 = nil, "0a" },
	} {
		for session, kind := range map[string]id.Kind{"s1": "", member.String(): id.KindMember} {
			w := ofJob(t, kind, session)
			types, _ := w.try(w.given("a1", `"<red>"`, change), 1<<30)
			require.Empty(t, types, name)
			w.refused("FORBIDDEN")
			types, _ = w.try(w.given("a2", `"<red>"`, nil), 1<<30)
			require.Equal(t, []event.Type{event.TaskMessaged}, types, name)
		}
	}
}
