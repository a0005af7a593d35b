package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
)

// Services decide again after each event that others append, and ask the state of one log for decisions at any time.
func TestADecisionLeavesTheStateAsItIs(t *testing.T) {
	w := newWorld(t)
	_, err := w.state.Decide(w.command(command.Open, "open", command.OpenSession{Dialect: "orbit"}), w.now, rules)
	require.NoError(t, err)
	require.Equal(t, conversation.State{}, w.state)
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t)}
		c.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		look := func(t *rapid.T) {
			if len(c.sent) == 0 {
				return
			}
			k := rapid.SampledFrom(c.sent).Draw(t, "command")
			k.Verb = rapid.SampledFrom(append([]id.Name{k.Verb}, decided...)).Draw(t, "verb")
			k.ID = rapid.SampledFrom([]string{k.ID, "other"}).Draw(t, "id")
			before, err := conversation.Load(storedOf(t, &c.state))
			require.NoError(t, err)
			_, _ = c.state.Decide(k, c.now, rules) // the data may be of another command
			require.Equal(t, before, &c.state, "%s", k.Verb)
		}
		t.Repeat(map[string]func(*rapid.T){
			"message": c.message, "respond": c.respond, "control": c.control, "work": c.work, "work2": c.work, "time": c.time, "": look,
		})
	})
}

// decided are verbs of commands whose decisions look at most of a state.
var decided = []id.Name{
	command.SendMessage, command.Cancel, command.Close, command.Delete, command.CheckDeadlines, command.Answer,
	command.CancelStep, command.RestartStep, command.CancelPlan, command.Replan,
}
