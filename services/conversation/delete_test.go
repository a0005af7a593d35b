package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
)

// TestADeletionEndsAnyHistory: wherever a history is cut off by a deletion, and however
// often the service dies while it deletes, every accepted message has its one terminal
// event, the tombstone is last, and neither a command nor a fold gets beyond it.
func TestADeletionEndsAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t)}
		c.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		steps := map[string]func(*rapid.T){
			"message": c.message, "respond": c.respond, "control": c.control, "work": c.work, "work2": c.work, "time": c.time,
		}
		t.Repeat(steps)
		dies := rapid.IntRange(0, 3).Draw(t, "dies after")
		for cut := 1; cut <= len(c.log); cut++ {
			deleteAt(t, c, cut, dies)
		}
	})
}

func deleteAt(t *rapid.T, c *chaos, cut, dies int) {
	w := newWorld(t)
	w.now = c.now
	for _, e := range c.log[:cut] {
		w.log = append(w.log, e)
		require.NoError(t, w.state.Apply(e))
	}
	w.from = command.Session
	k := w.command(command.Delete, "delete", nil)
	w.try(k, dies)
	_, whole := w.try(k, 1<<30)
	require.True(t, whole)
	checkDeleted(t, w)

	for _, old := range append(c.sent, k, w.command(command.Open, "open-2", command.OpenSession{}), w.command(command.SendMessage, "late", command.UserMessage{Content: "x"})) {
		got, err := w.state.Decide(old, w.now, rules)
		require.NoError(t, err)
		require.Empty(t, got.Facts, "%s has an effect after the deletion", old.Verb)
		if old.Verb != command.Delete {
			require.Equal(t, string(fault.SessionDeleted), got.Direct.(event.CommandRefusedData).Code)
		}
	}
	var alone conversation.State
	require.NoError(t, alone.Apply(w.log[len(w.log)-1]))
	require.Equal(t, alone, w.state, "the fold of the tombstone alone is the fold of all")
	require.ErrorContains(t, alone.Apply(c.log[0]), "follows the deletion")
}

func checkDeleted(t *rapid.T, w *world) {
	st := &w.state
	require.True(t, st.Deleted)
	require.True(t, st.Closed)
	require.Nil(t, st.Active())
	require.Empty(t, st.Runs())
	require.Empty(t, st.Unclaimed())
	require.Empty(t, st.Abandoned())
	require.True(t, st.Due(w.now, rules).IsZero(), "no timer is wanted")
	accepted, terminal, ids := 0, 0, map[string]bool{}
	for i, e := range w.log {
		require.False(t, ids[e.ID], "event id %s is used twice", e.ID)
		ids[e.ID] = true
		require.Equal(t, i == len(w.log)-1, e.Type.Tombstone(), "the tombstone is last, and one")
		switch {
		case e.Type == event.MessageReceived:
			accepted++
		case e.Type == event.RunStarted:
			d, err := event.As[event.RunStartedData](e)
			require.NoError(t, err)
			if d.Repairs != "" {
				accepted++ // a run that no message began
			}
		case e.Type.Terminal():
			terminal++
		}
	}
	require.Equal(t, accepted, terminal, "every accepted message has its terminal event")
}
