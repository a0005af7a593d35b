package growth_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/internal/eventlog"
)

var (
	returning = flag.Int("returns", 200, "old sessions to which a client returns, each for the first time since the start")
	together  = flag.Int("together", 16, "clients that return at once")
)

// TestReturns prints what the first return to each of many old sessions costs after a restart: one after the other, several at
// once, and beside a chat that goes on. No session is read twice, so every return reads the stored log.
func TestReturns(t *testing.T) {
	i, have := install(t), 0
	table := growth.NewTable("sessions", "disk MiB", "memory MiB", "return p50 ms", "p99 ms", "its processor time ms", fmt.Sprintf("%d at once p50 ms", *together), "p99 ms", "its processor time ms", "memory after them MiB")
	for _, n := range sizes(t, *sessions) {
		names := make([]string, 0, n-have)
		for ; have < n; have++ {
			names = append(names, fmt.Sprint("grown-", have))
		}
		i.filled(func(ctx context.Context, s *eventlog.Store, tpl *growth.Template) error {
			return tpl.Fill(ctx, s, names, *each)
		})
		i.stop()
		i.start()
		require.Eventually(t, func() bool { return i.total() == n+i.opened }, 10*time.Minute, 50*time.Millisecond)
		i.idle() // rests first
		memory := i.memory()
		old := rand.New(rand.NewPCG(uint64(n), 11)).Perm(n)
		alone := i.returns(old[:min(*returning, n/2)], 1)
		atOnce := i.returns(old[n/2:min(n/2+*returning, n)], *together)
		table.Add(n, float64(i.stored()), float64(memory), alone.of(50), alone.of(99), ms(alone.busy), atOnce.of(50), atOnce.of(99), ms(atOnce.busy), float64(i.memory()))
	}
	shown(t, "Returns to old sessions", "The first return of a client to each of many old sessions, after a restart: what it waits for the first event that it has missed, and what that costs.", table)
}

// returned is what returns took, ascending, and the processor time of each.
type returned struct {
	took []time.Duration
	busy time.Duration
}

// of returns a percentile in milliseconds.
func (r returned) of(percent int) float64 { return ms(r.took[(len(r.took)-1)*percent/100]) }

// returns measures the return to each of the sessions, with so many clients at once.
func (i *installation) returns(sessions []int, clients int) returned {
	i.t.Helper()
	out := returned{took: make([]time.Duration, len(sessions))}
	before := i.busy()
	var g errgroup.Group
	g.SetLimit(clients)
	for at, n := range sessions {
		g.Go(func() error {
			out.took[at] = i.resume(fmt.Sprint("grown-", n), uint64(max(*each, 10)))
			return nil
		})
	}
	require.NoError(i.t, g.Wait())
	out.busy = (i.busy() - before) / time.Duration(len(sessions))
	slices.Sort(out.took)
	return out
}
