package verify

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Matters reports whether every dialect shows the event: it is a question, a failure or a final answer.
func Matters(t testing.TB, e Stored) bool {
	t.Helper()
	n, err := narrate.Of(event.Unwrap(e.Event))
	require.NoError(t, err)
	return slices.Contains([]narrate.Kind{narrate.Question, narrate.Failure, narrate.Answer}, n.Kind)
}

// Complete requires that a viewer was shown what matters in the log, and nothing that is not in it. It returns the number of events
// with frames.
func Complete(t testing.TB, s *client.Viewer, log []Stored) int {
	t.Helper()
	by := map[uint64]bool{}
	for _, one := range s.Shown() {
		by[one.Seq] = true
	}
	shown := slices.Sorted(maps.Keys(by))
	require.NotEmpty(t, shown)
	require.LessOrEqual(t, shown[len(shown)-1], uint64(len(log)))
	for _, e := range log {
		require.True(t, by[e.Sequence] || !Matters(t, e), "%s does not show %d %s: %s", s.Name, e.Sequence, e.Type, e.Data)
	}
	return len(by)
}
