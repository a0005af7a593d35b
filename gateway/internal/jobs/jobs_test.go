package jobs_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/internal/jobs"
)

// A job waits until one of its questions was allowed, or all of them are over. A copy is not changed with it.
func TestJobsWaitForAnswers(t *testing.T) {
	all := jobs.Jobs{"a": {Step: "one"}}
	all.Ask("a", "p")
	before := maps.Clone(all)
	all.Ask("a", "q")
	all.Ask("unknown", "p")
	require.Len(t, all, 1)
	require.False(t, before["a"].WaitsFor("q"))
	works, waiting := all.Work()
	require.Equal(t, []any{false, 1}, []any{works, waiting})
	all.Answer("p", false)
	require.True(t, all["a"].WaitsFor("q"))
	require.True(t, before["a"].WaitsFor("p"))
	all.Answer("q", false)
	works, _ = all.Work()
	require.True(t, works, "its last question is over")

	over := map[string]bool{"refused": false, "allowed": true}
	outcome := func(id string) (bool, bool) {
		allowed, known := over[id]
		return known, allowed
	}
	all.Suspend("a", []string{"refused"}, outcome)
	all.Suspend("a", []string{"open", "allowed"}, outcome)
	works, _ = all.Work()
	require.True(t, works, "nothing is open, or one was allowed")
	all.Suspend("a", []string{"refused", "open"}, outcome)
	require.True(t, all["a"].WaitsFor("open"))
	require.False(t, all["a"].WaitsFor("refused"))
	all.Start("a")
	require.False(t, all["a"].WaitsFor("open"))
}
