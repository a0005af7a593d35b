package newest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoReaderWaitsForALargeCount that is known: the last one is shown while the server counts anew, once at a time.
func TestNoReaderWaitsForALargeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, counted, cost, err := NewCounts(), 0, 80*time.Millisecond, error(nil)
		count := func(context.Context) (census, error) {
			<-time.After(cost)
			counted++
			return census{total: 1_000_000 + counted, first: 1}, err
		}
		made := time.Now()
		shows := func(stream time.Time, want int, wait time.Duration) {
			t.Helper()
			began := time.Now()
			got, err := c.of(t.Context(), "f", stream, count)
			require.NoError(t, err)
			require.Equal(t, want, got.total-1_000_000)
			require.Equal(t, wait, time.Since(began))
		}
		shows(made, 1, cost)
		shows(made, 1, 0)
		<-time.After(4 * time.Second)
		shows(made, 1, 0) // it holds
		<-time.After(2 * time.Second)
		shows(made, 1, 0)
		shows(made, 1, 0) // one renewal at a time
		synctest.Wait()
		<-time.After(cost)
		synctest.Wait()
		require.Equal(t, 2, counted)
		shows(time.Time{}, 2, 0) // the stream is not known

		err = errors.New("the bus is away")
		<-time.After(10 * time.Second)
		shows(made, 2, 0)
		<-time.After(2 * cost)
		synctest.Wait()
		err = nil
		shows(made, 2, 0) // a renewal that failed is repeated
		<-time.After(cost)
		synctest.Wait()
		shows(made, 4, 0)

		<-time.After(stale)
		shows(made, 5, cost)
		shows(made.Add(time.Second), 6, cost) // another stream of the same name
	})
}

// TestASmallCountIsNew after a second, and that of nothing at once.
func TestASmallCountIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, total := NewCounts(), 0
		shows := func(want int) {
			t.Helper()
			got, err := c.of(t.Context(), "f", time.Time{}, func(context.Context) (census, error) { return census{total: total}, nil })
			require.NoError(t, err)
			require.Equal(t, want, got.total)
		}
		shows(0)
		total = 10
		shows(10)
		total = 11
		shows(10)
		<-time.After(2 * fresh)
		shows(11)
		total = 0
		<-time.After(2 * fresh)
		shows(0)
		total = 12
		shows(12)
	})
}
