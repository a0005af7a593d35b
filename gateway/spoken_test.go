package gateway_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// A client of the original knows user_message only: its next message answers the question that it was shown, and the one after it is
// a message again. A second answer is told that another one counts.
func TestAMessageAnswersTheQuestionThatWasShown(t *testing.T) {
	t.Parallel()
	sign, v := signing(t)
	r := start(t, sign)
	l := r.session("default")
	c := r.open("/ws", "session="+l.Entity.String())
	c.ready()
	says := func(said string) wirecmd.Command {
		c.write(text(fmt.Sprintf(`{"type":"user_message","content":%q}`, said)))
		return r.nextCommand(l.Entity.String())
	}
	happens := func(data ...event.Data) {
		for _, d := range data {
			require.NoError(t, r.append(l, unique(), d))
			c.must("agent_thinking")
		}
	}
	require.Equal(t, wirecmd.SendMessage, says("yes").Verb, "no question is open")
	for i, one := range []struct {
		scope, said string
		want        wirecmd.AnswerQuestion
	}{
		{event.ScopeTool, "Yes, please!", wirecmd.AnswerQuestion{Approved: true}},
		{event.ScopeTool, "no.", wirecmd.AnswerQuestion{}},
		{event.ScopeTool, "好的。", wirecmd.AnswerQuestion{Approved: true}},
		{event.ScopeTool, "what would it cost?", wirecmd.AnswerQuestion{Feedback: "what would it cost?"}},
		{event.ScopeBudget, "ok", wirecmd.AnswerQuestion{Approved: true}},
		{event.ScopeAgent, "blue", wirecmd.AnswerQuestion{Approved: true, Feedback: "blue"}},
	} {
		call := fmt.Sprint("call_", i)
		q := claims(call, one.scope, fmt.Sprintf(`{"amount":%d}`, i))
		if one.scope != event.ScopeTool {
			q.CallID, q.Tool, q.Arguments, q.Digest = "", "", nil, ""
		}
		happens(q)
		cmd := says(one.said)
		require.Equal(t, wirecmd.Answer, cmd.Verb, one.said)
		var got wirecmd.AnswerQuestion
		require.NoError(t, cmd.Decode(&got))
		require.True(t, v.Signed(cmd))
		require.Equal(t, one.scope == event.ScopeTool && one.want.Approved, got.Digest != "", "an approval is of the call that was shown")
		got.Digest, got.CallID, one.want.InputID = "", "", q.InputID
		require.Equal(t, one.want, got)
		happens(event.InputAnsweredData{InputID: q.InputID, RunID: "r"})
		require.Equal(t, wirecmd.SendMessage, says("yes").Verb, "the question is answered")
	}
	happens(claims("over", event.ScopeTool, `{}`))
	require.NoError(t, r.append(l, unique(), event.RunFailedData{RunID: "r"}))
	c.must("error")
	require.Equal(t, wirecmd.SendMessage, says("yes").Verb, "its run is over")
	late := claims("late", event.ScopeTool, `{}`)
	happens(late)
	cmd := says("no")
	require.NotEmpty(t, cmd.ReplyTo)
	r.sendDirect(cmd.ReplyTo, subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: l.Entity}, event.CommandRefusedData{CommandID: cmd.ID, Code: "INPUT_ANSWERED", AnsweredBy: "bob"})
	c.refused("INPUT_ANSWERED")
}
