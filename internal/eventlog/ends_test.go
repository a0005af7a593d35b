package eventlog

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndsAreTheOldestAndTheNewestThatAreLeft(t *testing.T) {
	t.Parallel()
	s, log := newStore(t, single(t), Options{}), testLog("ends")
	first, last, err := s.Ends(t.Context(), log)
	require.NoError(t, err)
	require.Nil(t, first)
	require.Nil(t, last)

	fill(t, s, testLog("ends-0"), 0, 3)
	fill(t, s, log, 0, 5)
	first, last, err = s.Ends(t.Context(), log)
	require.NoError(t, err)
	require.Equal(t, "n0", first.ID)
	require.Equal(t, uint64(5), last.Sequence)

	expire(t, s, log, last.Stream-2)
	first, _, err = s.Ends(t.Context(), log)
	require.NoError(t, err)
	require.Equal(t, uint64(4), first.Sequence)
	require.Equal(t, uint64(4), first.Cursor().Seq)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Ends(ctx, log)
	require.ErrorIs(t, err, context.Canceled)
}
