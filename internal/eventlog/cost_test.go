package eventlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// tally0 is a Sink that takes everything and allocates nothing.
type tally0 struct{ n, calls int }

func (c *tally0) Deliver(batch []*Entry) int {
	c.n += len(batch)
	c.calls++
	return len(batch)
}
func (c *tally0) Truncated(uint64) {}
func (c *tally0) Failed(error)     {}
func (c *tally0) CaughtUp(uint64)  {}

// uncompared returns the tail of a watched log, and puts its next comparison with the stream off for the length of a test.
func uncompared(t *testing.T, s *Store, log subject.Log) *tail {
	t.Helper()
	tl := s.tail(tailKey(log))
	require.Eventually(t, func() bool {
		tl.mu.Lock()
		defer tl.mu.Unlock()
		if tl.checkAt.IsZero() { // its start, which sets the first one, continues
			return false
		}
		tl.checkAt = time.Now().Add(time.Hour)
		return true
	}, time.Minute, time.Millisecond)
	return tl
}

func TestHeadsListTheLogsOfOneTenant(t *testing.T) {
	conn := single(t)
	s := newStore(t, conn, Options{})
	none, err := s.Heads(t.Context(), id.DefaultTenant, id.KindSession)
	require.NoError(t, err)
	require.Empty(t, none)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	for i := range 40 { // several shards, several logs in each
		log := testLog(fmt.Sprintf("h%02d", i))
		fill(t, s, log, 0, 1+i%3)
		log.Tenant = other
		fill(t, s, log, 0, 1)
	}
	heads, err := s.Heads(t.Context(), id.DefaultTenant, id.KindSession)
	require.NoError(t, err)
	require.Len(t, heads, 40)
	for i, e := range heads {
		log, err := subject.ParseName(e.Subject)
		require.NoError(t, err)
		require.Equal(t, id.DefaultTenant, log.Tenant)
		end, err := s.Last(t.Context(), log)
		require.NoError(t, err)
		require.Equal(t, end, e.Cursor())
		require.True(t, i == 0 || !e.Time.After(heads[i-1].Time), "newest first")
	}
}
