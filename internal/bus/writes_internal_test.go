package bus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStreamThatTakesNothingIsRemembered(t *testing.T) {
	t.Parallel()
	var w writes
	now := time.Unix(1000, 0)
	require.Empty(t, w.muted(now))
	w.fail("B", now)
	w.fail("A", now.Add(time.Second))
	require.Equal(t, []string{"A", "B"}, w.muted(now))
	w.succeeded("A")
	require.Equal(t, []string{"B"}, w.muted(now.Add(mutedFor)))
	require.Empty(t, w.muted(now.Add(mutedFor+1)), "a time later another write may try")
	w.fail("B", now)
	w.forget()
	require.Empty(t, w.muted(now), "after a reconnection")
}
