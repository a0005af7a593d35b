package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestTheFieldOfAFault is the first one that is wrong, each time.
func TestTheFieldOfAFault(t *testing.T) {
	t.Parallel()
	options := func(o wire.RunOptions) error {
		_, err := spec(o)
		return err
	}
	for range 20 {
		for field, err := range map[string]error{
			"queue_ms":        checkTimes(wire.NewTask{QueueMS: -1}),
			"timeout_ms":      checkTimes(wire.NewTask{TimeoutMS: -1}),
			"max_concurrent":  options(wire.RunOptions{MaxConcurrent: -1, TimeoutSeconds: maxOption + 1}),
			"timeout_seconds": options(wire.RunOptions{TimeoutSeconds: -1}),
		} {
			require.Equal(t, field, fault.From(err, "").Field)
		}
		require.Equal(t, "queue_ms", fault.From(checkTimes(wire.NewTask{QueueMS: -1, TimeoutMS: -1}), "").Field)
		require.NoError(t, checkTimes(wire.NewTask{}))
		require.NoError(t, options(wire.RunOptions{}))
	}
}
