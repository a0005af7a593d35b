package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/ledger"
)

func TestOnceIsDoneOnce(t *testing.T) {
	t.Parallel()
	var o ledger.Outbox
	calls := 0
	do := func() error {
		if calls++; calls == 1 {
			return errors.New("the bus is away")
		}
		return nil
	}
	require.Error(t, o.Once("k", do))
	require.NoError(t, o.Once("k", do), "a failed one is done again")
	require.NoError(t, o.Once("k", do))
	require.Equal(t, 2, calls)
}

// TestDueCommandsAreSentAgain: a command without an effect is sent again after the pause,
// and one that follows no more is forgotten.
func TestDueCommandsAreSentAgain(t *testing.T) {
	t.Parallel()
	var o ledger.Outbox
	now := time.Unix(1_800_000_000, 0)
	all := []cmd.Command{{ID: "1", Service: cmd.Task}, {ID: "2", Service: cmd.Task}}
	require.Equal(t, all, o.Due(all, now, time.Minute))
	o.Sent(all[0], now)
	require.Equal(t, all[1:], o.Due(all, now.Add(time.Second), time.Minute))
	require.Equal(t, all, o.Due(all, now.Add(time.Minute), time.Minute))
	require.Empty(t, o.Due(nil, now, time.Minute))
	require.Equal(t, all, o.Due(all, now, time.Minute))
}
