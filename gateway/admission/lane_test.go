package admission

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLaneGivesEveryTurn: whatever comes in whatever order, no more connections than the lane has turns are worked on at a
// time, and each gets its turn.
func TestLaneGivesEveryTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		turns := rapid.IntRange(1, 3).Draw(rt, "turns")
		classes := rapid.SliceOfN(rapid.SampledFrom([]Class{Arriving, Known, Strange}), 1, 200).Draw(rt, "classes")
		synctest.Test(t, func(*testing.T) {
			l := newLane(turns)
			var at, most, done atomic.Int64
			for _, c := range classes {
				go func() {
					turn := l.Turn()
					turn.Take(c)
					turn.Take(c) // has it
					most.Store(max(most.Load(), at.Add(1)))
					<-time.After(laneHold / 10)
					at.Add(-1)
					turn.Leave()
					turn.Leave() // has none
					done.Add(1)
				}()
			}
			<-time.After(time.Duration(len(classes)) * laneHold)
			synctest.Wait()
			require.EqualValues(rt, len(classes), done.Load())
			require.LessOrEqual(rt, most.Load(), int64(turns))
			require.Equal(rt, turns, l.free)
			require.Empty(rt, l.with)
		})
	})
}

// TestLaneClasses: strangers keep clients waiting for one turn, not for all of theirs, and no connection is accepted while many
// strangers wait.
func TestLaneClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(1)
		first := l.Turn()
		first.Take(Strange)
		var order []string
		take := func(name string, c Class) {
			go func() {
				turn := l.Turn()
				turn.Take(c)
				order = append(order, name)
				turn.Leave()
			}()
			synctest.Wait()
		}
		for range mostStrangers + 1 {
			take("stranger", Strange)
		}
		take("accept", Arriving)
		take("accept", Arriving)
		take("client", Known)
		first.Leave()
		synctest.Wait()
		require.Len(t, order, mostStrangers+4)
		require.Equal(t, []string{"client", "stranger", "stranger", "accept", "stranger", "accept"}, order[:6])
	})
}

// TestLaneTakesTurnsBack: work that waits for something keeps no other connection from its turn.
func TestLaneTakesTurnsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(1)
		stuck, next := l.Turn(), l.Turn()
		stuck.Take(Known)
		<-time.After(10 * laneHold)
		require.True(t, stuck.has, "while none waits")
		began := time.Now()
		next.Take(Strange)
		require.LessOrEqual(t, time.Since(began), 2*laneHold)
		require.False(t, stuck.has)
		stuck.Leave()
		require.True(t, next.has)
		Yield(next.Within(t.Context()))
		require.False(t, next.has)
		Yield(t.Context())
	})
}
