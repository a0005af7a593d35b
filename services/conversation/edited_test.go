package conversation_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
)

// anAmount is the schema of the arguments of a tool that pays.
const anAmount = `{"type":"object","properties":{"amount":{"type":"integer","maximum":100}},"required":["amount"],"additionalProperties":false}`

// paying is a run whose model wants to pay 50, twice; people are asked about both calls. The second may be approved or rejected
// only.
func (w *world) paying(commandID string) *conversation.Job {
	w.do(command.SendMessage, commandID, command.UserMessage{Content: "go"})
	u := w.state.Job(conversation.RunID(commandID))
	w.append(commandID+".claim", event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1})
	shown := json.RawMessage(`{"amount":50}`)
	calls := []event.ToolCall{{ID: commandID + ".c0", Name: "pay", Arguments: shown}, {ID: commandID + ".c1", Name: "pay", Arguments: shown}}
	w.append(commandID+".said", event.MessageCompletedData{RunID: u.RunID, MessageID: commandID + ".m", Attempt: 1, ToolCalls: calls})
	for i, tc := range calls {
		q := event.InputRequestedData{
			InputID: conversation.QuestionOf(tc.ID), RunID: u.RunID, Scope: event.ScopeTool, Attempt: 1, CallID: tc.ID, Tool: tc.Name,
			Arguments: tc.Arguments, Digest: event.CallDigest(tc.Name, tc.Arguments),
		}
		if i == 0 {
			q.Parameters = json.RawMessage(anAmount)
		}
		w.append("ask."+tc.ID, q)
	}
	w.put(u)
	return u
}

// editing is the answer that approves the call with other arguments, as a gateway sends it.
func editing(callID, arguments string) command.AnswerQuestion {
	return command.AnswerQuestion{
		CallID: callID, Approved: true, Arguments: json.RawMessage(arguments),
		Digest: event.CallDigest("pay", json.RawMessage(arguments)), Shown: event.CallDigest("pay", json.RawMessage(`{"amount":50}`)),
	}
}

// TestAnAnswerChangesTheArguments: the call runs with the arguments of the answer, and the model sees those, and that a person has
// changed them.
func TestAnAnswerChangesTheArguments(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Payer"})
	u := w.paying("m")
	before := w.log[len(w.log)-4]
	require.Equal(t, event.MessageCompleted, before.Type)
	original := string(before.Data)

	require.Equal(t, 1, w.do(command.Answer, "r", editing("m.c0", `{"amount":5}`)))
	d, err := event.As[event.InputAnsweredData](w.log[len(w.log)-1])
	require.NoError(t, err)
	require.Equal(t, event.DecisionModify, d.Decision)
	require.JSONEq(t, `{"amount":5}`, string(d.Arguments))
	require.Zero(t, w.do(command.Answer, "r", editing("m.c0", `{"amount":5}`)), "a repeat changes nothing")
	require.Equal(t, string(fault.InputAnswered), w.refused("late", editing("m.c0", `{"amount":6}`)).Code)

	changed := event.CallDigest("pay", json.RawMessage(`{"amount":5}`))
	a, _ := w.state.Approval("m.c0")
	require.True(t, a.Allowed())
	require.Equal(t, changed, a.Digest)
	st := w.state.Next(u.ID)
	require.Equal(t, []string{"m.c0"}, ids(st.Calls))
	require.JSONEq(t, `{"amount":5}`, string(st.Calls[0].Arguments))
	require.Equal(t, original, string(before.Data), "the log's message is as it was")

	w.append("claim2", event.JobStartedData{RunID: u.RunID, Attempt: 2, Resumed: true})
	w.append("1", event.ToolCalledData{CallID: "m.c0", RunID: u.RunID, Attempt: 2, Tool: "pay", Arguments: st.Calls[0].Arguments, InputID: a.QuestionID, Digest: changed})
	w.append("2", event.ToolCompletedData{CallID: "m.c0", RunID: u.RunID, Attempt: 2, Result: "paid 5"})
	w.do(command.Answer, "no", command.AnswerQuestion{CallID: "m.c1", Feedback: "once is enough"})
	own := w.state.Brief(u.ID, 1000).Own
	require.JSONEq(t, `{"amount":5}`, string(own[0].ToolCalls[0].Arguments))
	require.JSONEq(t, `{"amount":50}`, string(own[0].ToolCalls[1].Arguments))
	require.Contains(t, own[1].Content, "A person has changed the arguments")
	require.Contains(t, own[1].Content, "paid 5")
	require.Equal(t, "denied: once is enough", own[2].Content)
}

func (w *world) refused(commandID string, d command.AnswerQuestion) event.CommandRefusedData {
	w.do(command.Answer, commandID, d)
	got, ok := w.direct.(event.CommandRefusedData)
	require.True(w.t, ok, "%#v", w.direct)
	return got
}

// TestChangesThatAreNotTaken: the question stays open, and its sender learns what is wrong.
func TestChangesThatAreNotTaken(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Payer"})
	u := w.paying("m")
	unseen, forged, rejecting := editing("m.c0", `{"amount":5}`), editing("m.c0", `{"amount":5}`), editing("m.c0", `{"amount":5}`)
	unseen.Shown = event.CallDigest("pay", json.RawMessage(`{"amount":49}`))
	forged.Digest = unseen.Shown
	rejecting.Approved = false
	blind := editing("m.c0", `{"amount":5}`)
	blind.Shown = ""
	for name, c := range map[string]struct {
		answer command.AnswerQuestion
		code   fault.Code
		says   string
	}{
		"too much":            {editing("m.c0", `{"amount":101}`), fault.InvalidField, "/amount"},
		"another type":        {editing("m.c0", `{"amount":"5"}`), fault.InvalidField, "/amount"},
		"another member":      {editing("m.c0", `{"amount":5,"to":"me"}`), fault.InvalidField, "to"},
		"a list":              {editing("m.c0", `[5]`), fault.InvalidField, "object"},
		"nothing":             {editing("m.c0", `{}`), fault.InvalidField, "amount"},
		"a call as it is":     {editing("m.c1", `{"amount":5}`), fault.InvalidField, "cannot be changed"},
		"an unseen call":      {unseen, fault.InputNotFound, "does not match the call"},
		"no call":             {blind, fault.InputNotFound, "does not name its call"},
		"the digest of other": {forged, fault.InputNotFound, "does not match its arguments"},
		"a rejection":         {rejecting, fault.InvalidField, "must not change arguments"},
	} {
		got := w.refused("r-"+name, c.answer)
		require.Equal(t, string(c.code), got.Code, name)
		require.Contains(t, got.Message, c.says, name)
	}
	require.Equal(t, conversation.ActionWait, w.state.Next(u.ID).Kind)
	require.Equal(t, 1, w.do(command.Answer, "good", editing("m.c0", `{"amount":5}`)))
}

// aChange is a member whose people change one call, and approve another.
func aChange() []event.Event {
	w := newWorld(require.TestingT(panics{}))
	w.from = command.Member
	w.do(command.CreateMember, "create", event.MemberCreatedData{MemberID: "a", TeamID: "t", MemberDefinition: event.MemberDefinition{Name: "Payer"}})
	for n := range 3 {
		name := fmt.Sprint("m", n)
		u := w.paying(name)
		w.do(command.Answer, name+".r0", editing(name+".c0", fmt.Sprintf(`{"amount":%d}`, n)))
		w.do(command.Answer, name+".r1", command.AnswerQuestion{CallID: name + ".c1", Feedback: "no"})
		w.append(name+".claim2", event.JobStartedData{RunID: u.RunID, Attempt: 2, Resumed: true})
		w.append(name+".called", event.ToolCalledData{CallID: name + ".c0", RunID: u.RunID, Attempt: 2, Tool: "pay", Arguments: w.state.Next(u.ID).Calls[0].Arguments})
		if n < 2 {
			w.append(name+".paid", event.ToolCompletedData{CallID: name + ".c0", RunID: u.RunID, Attempt: 2, Result: "paid"})
			w.do(command.Cancel, name+".stop", command.CancelRun{})
		}
	}
	return w.log
}
