package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// again handles a repeat whose sender wants an answer. It appends nothing, and returns the answer.
func (w *world) again(verb id.Name, commandID string, data any) event.Data {
	c := w.command(verb, commandID, data)
	c.Again = "2"
	n, whole := w.try(c, 0)
	require.True(w.t, whole)
	require.Zero(w.t, n)
	return w.direct
}

// TestARepeatIsAnsweredAsTheFirst: what a command did is not done again, and its sender learns what came of it.
func TestARepeatIsAnsweredAsTheFirst(t *testing.T) {
	yes := true
	t.Run("steps", func(t *testing.T) {
		w := newWorld(t)
		solve := command.UserMessage{Content: "solve", RunSpec: event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "A"}}}}
		w.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		w.do(command.SendMessage, "m1", solve)
		got, ok := w.again(command.SendMessage, "m1", solve).(event.MessageReceivedData)
		require.True(t, ok)
		require.Equal(t, event.MessageReceivedData{MessageID: "m1", RunID: w.state.Active().ID, Content: "solve", Principal: "alice", RunSpec: solve.RunSpec}, got)
		w.do(command.SendMessage, "m1", solve)
		require.Nil(t, w.direct, "its sender wants no answer")

		w.do(command.SendMessage, "m2", solve)
		refused, ok := w.again(command.SendMessage, "m2", solve).(event.CommandRefusedData)
		require.True(t, ok)
		require.Equal(t, string(fault.SessionBusy), refused.Code)

		ref := command.StepRef{StepID: "a"}
		for _, verb := range []id.Name{command.RestartStep, command.CancelStep} {
			w.do(verb, "k-"+verb.String(), ref)
			first := w.direct
			require.Equal(t, first, w.again(verb, "k-"+verb.String(), ref), verb)
		}
	})
	t.Run("replan", func(t *testing.T) {
		w := newWorld(t)
		w.ask(event.RunSpec{ConfirmPlan: &yes})
		w.say(w.job(), tasks)
		for _, commandID := range []string{"p1", "p2"} { // in the run, and in a new one
			w.do(command.Replan, commandID, command.ReplanRun{Question: "smaller"})
			first, ok := w.direct.(event.NoticeData)
			require.True(t, ok)
			require.True(t, *first.OK)
			require.Equal(t, map[string]string{"p1": "in_run", "p2": "restart"}[commandID], first.Mode)
			require.Equal(t, first, w.again(command.Replan, commandID, command.ReplanRun{Question: "smaller"}))
			w.do(command.Cancel, "stop-"+commandID, command.CancelRun{})
		}
	})
	t.Run("answers", func(t *testing.T) {
		w := newWorld(t)
		r := w.ask(event.RunSpec{ConfirmPlan: &yes})
		w.say(w.job(), tasks)
		bad := command.AnswerQuestion{InputID: r.Plan.Asked.ID, Approved: true, Steps: []byte(`[]`)}
		w.do(command.Answer, "a1", bad)
		refused, ok := w.again(command.Answer, "a1", bad).(event.CommandRefusedData)
		require.True(t, ok)
		require.Equal(t, string(fault.PlanInvalid), refused.Code)
		good := command.AnswerQuestion{InputID: bad.InputID, Approved: true}
		w.do(command.Answer, "a2", good)
		answered, ok := w.again(command.Answer, "a2", good).(event.InputAnsweredData)
		require.True(t, ok)
		require.Equal(t, "a2 approve alice", answered.CommandID+" "+answered.Decision+" "+answered.By)
	})
}

// TestAStepOfAnotherRun is neither cancelled nor restarted where the command names its run.
func TestAStepOfAnotherRun(t *testing.T) {
	w := newWorld(t)
	r := w.ask(event.RunSpec{})
	w.say(w.job(), tasks)
	for _, verb := range []id.Name{command.RestartStep, command.CancelStep} {
		n := len(w.log)
		w.do(verb, "other-"+verb.String(), command.StepRef{RunID: "other", StepID: "a"})
		notice, ok := w.direct.(event.NoticeData)
		require.True(t, ok)
		require.False(t, *notice.OK)
		require.Len(t, w.log, n)
		w.do(verb, "this-"+verb.String(), command.StepRef{RunID: r.ID, StepID: "a"})
		require.Greater(t, len(w.log), n)
	}
}
