package assignment_test

import (
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
)

// checkShown holds what people are shown of a task, after each of its events, to what the service decides with.
func checkShown(t require.TestingT, log []event.Event) {
	var state assignment.State
	shown := snapshot.New(id.KindTask)
	for _, e := range log {
		require.NoError(t, state.Apply(e))
		shown.Take(e)
		s := shown.Snapshot(taskLog.Entity).Task
		require.Equal(t, state.Status(), s.Status, "after %d, %s", e.Sequence, e.Type)
		open := ""
		for _, q := range s.Questions {
			if q.State == "waiting" && s.Ended == "" {
				open = q.ID
			}
		}
		if state.Question() != "" {
			require.Equal(t, state.Question(), open, "after %d, %s", e.Sequence, e.Type)
		}
		held := 0
		for _, a := range s.Attempts {
			if a.To == "" {
				held++
				require.Equal(t, state.Head().Attempt, a.N)
			}
		}
		require.Equal(t, state.Holder() != "" && !state.Done(), held == 1, "after %d, %s", e.Sequence, e.Type)
	}
}
