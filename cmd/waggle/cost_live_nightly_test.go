//go:build nightly

package main

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The gate of what a run costs the bus: the messages of an answer of one line in a session that has had others. On a busy
// machine announcements come late and are read from the log, so that the least of three rounds counts: the cost of runs is in all.
func TestGateMessagesOfARun(t *testing.T) {
	t.Parallel()
	const (
		rounds = 3
		runs   = 20
	)
	i := startForCost(t)
	c := i.talk(t)
	c.ask("what is 2+3?")
	count := i.spy(t)
	least := map[string]int{}
	for round := range rounds {
		for range runs {
			c.ask("what is 2+3?")
		}
		got := count()
		t.Logf("round %d: %v", round, got)
		for family := range bounds {
			if n, ok := least[family]; !ok || got[family] < n {
				least[family] = got[family]
			}
		}
	}
	for family, most := range bounds {
		// Timers may cost half a message a run; one more in each run would be twice that.
		require.LessOrEqual(t, least[family], runs*most+runs/2, "%s: %v", family, least)
	}
}

// The gate of what a run costs in memory: the allocations of an answer of one line. Every round is a new chat, because a run costs
// more in a long one. Other work of the process counts as well, so that the least of five rounds counts: the cost of
// runs is in all.
func TestGateAllocationsOfARun(t *testing.T) {
	t.Parallel()
	const (
		rounds = 5
		runs   = 100
	)
	i := startForCost(t)
	mallocs := func() float64 {
		n, err := strconv.ParseFloat(i.metric(t, "go_memstats_mallocs_total"), 64)
		require.NoError(t, err)
		return n
	}
	chat := func() {
		c := i.talk(t)
		for range runs {
			c.ask("what is 2+3?")
		}
	}
	chat() // caches and pools fill
	least := math.Inf(1)
	for round := range rounds {
		before := mallocs()
		chat()
		each := (mallocs() - before) / runs
		t.Logf("round %d: %.0f allocations a run", round, each)
		least = min(least, each)
	}
	require.Less(t, least, float64(mostMallocs))
}
