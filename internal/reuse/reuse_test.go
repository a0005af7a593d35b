package reuse_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/reuse"
)

// there counts the goroutines of the package, when all of them wait.
func there() int {
	synctest.Wait()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("reuse.(*Goroutines).work("))
}

// TestJobsShareAGoroutine: one job after the other runs on one goroutine, which ends when none comes for a second.
func TestJobsShareAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		g := reuse.New(ctx)
		for range 100 {
			var ran sync.WaitGroup
			ran.Add(1)
			g.Go(ran.Done)
			ran.Wait()
			<-time.After(900 * time.Millisecond)
			require.Equal(t, 1, there())
		}
		<-time.After(200 * time.Millisecond)
		require.Zero(t, there())
	})
}

// TestJobsRunAtOnce: each job runs, however many others wait for it, and few goroutines outlive a burst.
func TestJobsRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		g := reuse.New(ctx)
		var all sync.WaitGroup
		open := make(chan struct{})
		for range 1000 {
			all.Add(1)
			g.Go(func() { <-open; all.Done() })
		}
		require.Equal(t, 1000, there())
		close(open)
		all.Wait()
		require.Equal(t, 64, there())
		cancel()
		require.Zero(t, there(), "none waits after the end")
		all.Add(1)
		g.Go(all.Done)
		all.Wait()
		require.Zero(t, there())
	})
}

// TestNoJobIsLost: jobs come at the moment at which a goroutine has waited long enough, and while all end.
func TestNoJobIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		g := reuse.New(ctx)
		var ran atomic.Int64
		for round := range 200 {
			for range 4 {
				go g.Go(func() { ran.Add(1) })
			}
			if round == 150 {
				go cancel()
			}
			<-time.After(time.Second)
		}
		synctest.Wait()
		require.EqualValues(t, 800, ran.Load())
		require.Zero(t, there())
	})
}
