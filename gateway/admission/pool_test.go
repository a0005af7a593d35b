package admission_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/admission"
)

func TestPoolSize(t *testing.T) {
	for limit, want := range map[int]int{1: 16, 100: 16, 1000: 50, 10_000: 500, 1_000_000: 500} {
		require.Equal(t, want, admission.PoolSize(limit), "of %d", limit)
	}
}

func TestThePoolEvictsTheOldest(t *testing.T) {
	p := admission.NewPool(2)
	var gone []string
	enter := func(name string) *admission.Entry { return p.Enter(func() { gone = append(gone, name) }) }
	one, two := enter("one"), enter("two")
	require.Empty(t, gone)
	three := enter("three")
	require.Equal(t, []string{"one"}, gone)
	require.False(t, one.Leave(), "it was evicted")
	require.True(t, two.Leave())
	require.False(t, two.Leave(), "once")
	enter("four")
	require.Equal(t, []string{"one"}, gone, "two has made room")
	require.True(t, p.Evict())
	require.Equal(t, []string{"one", "three"}, gone)
	require.False(t, three.Leave())
	require.True(t, p.Evict())
	require.False(t, p.Evict())
	require.Zero(t, p.Len())
	require.EqualValues(t, 3, p.Evicted())
}

func TestThePoolUnderRaces(t *testing.T) {
	const each, bound = 500, 16
	p := admission.NewPool(bound)
	var evicted, left atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range each {
				e := p.Enter(func() { evicted.Add(1) })
				if i%2 == 0 && e.Leave() {
					left.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, p.Len(), bound)
	require.EqualValues(t, 8*each, evicted.Load()+left.Load()+int64(p.Len()), "every connection ends in one way")
}
