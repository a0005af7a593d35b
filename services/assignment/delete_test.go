package assignment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/assignment"
)

// TestADeletionEndsAnyTask: after a tombstone at any place of any history, no command has an
// effect, no agent gets a message, and no event is folded.
func TestADeletionEndsAnyTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t)}
		c.issue(t, command.CreateTask, c.newTask(t))
		t.Repeat(map[string]func(*rapid.T){
			"client": c.client, "agent": c.byAgent, "agent2": c.byAgent, "worker": c.worker, "release": c.release, "time": c.time,
		})
		for cut := 0; cut <= len(c.log); cut++ {
			var st assignment.State
			for _, e := range c.log[:cut] {
				require.NoError(t, st.Apply(e))
			}
			e, err := event.New(taskLog, "deleted", "test", c.now, event.TaskDeletedData{Reason: "session_deleted"})
			require.NoError(t, err)
			e.Sequence = uint64(cut + 1)
			require.NoError(t, st.Apply(e))
			require.Equal(t, assignment.State{Seq: e.Sequence, Deleted: true}, st, "the fold of the tombstone alone is the fold of all")
			for _, k := range append(c.effective, c.command(command.CreateTask, "late", forA()), c.command(command.CheckTask, "due", nil)) {
				d, err := st.Decide(k, c.env())
				require.NoError(t, err)
				require.Empty(t, d.Facts, "%s has an effect after the deletion", k.Verb)
				require.Equal(t, string(fault.TaskNotFound), d.Direct.(event.CommandRefusedData).Code)
			}
			require.ErrorContains(t, st.Apply(e), "follows the deletion")
		}
	})
}
