package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// TestARequestBetweenTwoReplicasIsAskedAgain: the bus may name no replica while one takes over from another.
func TestARequestBetweenTwoReplicasIsAskedAgain(t *testing.T) {
	t.Parallel()
	answer, leaving := nats.NewMsg(""), nats.NewMsg("")
	leaving.Header.Set(headerAgain, "1")
	broken := errors.New("the connection broke")
	none := nats.ErrNoResponders
	for name, c := range map[string]struct {
		replies []any // of the bus, in order; the last one repeats
		want    any
		sends   int
	}{
		"a replica answers":             {[]any{answer}, answer, 1},
		"no replica for a moment":       {[]any{none, answer}, answer, 2},
		"a leaving one, then none":      {[]any{leaving, none, leaving, none, answer}, answer, 5},
		"no replica runs":               {[]any{none}, none, 1 + len(handoverPauses)},
		"replicas do nothing but leave": {[]any{leaving}, leaving, maxAsks},
		"the connection breaks":         {[]any{broken}, broken, 1},
		"it breaks after a missing one": {[]any{none, broken}, broken, 2},
		"the last replica leaves":       {[]any{leaving, none}, none, 2 + len(handoverPauses)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sends := 0
			got, err := ask(t.Context(), func() (*nats.Msg, error) {
				reply := c.replies[min(sends, len(c.replies)-1)]
				sends++
				if err, failed := reply.(error); failed {
					return nil, err
				}
				return reply.(*nats.Msg), nil
			}, func(context.Context, time.Duration) error { return nil })
			if want, failed := c.want.(error); failed {
				require.ErrorIs(t, err, want)
			} else {
				require.NoError(t, err)
				require.Same(t, c.want, got)
			}
			require.Equal(t, c.sends, sends)
		})
	}
}

func TestACallerWithoutTimeIsNotAskedToWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sends := 0
	_, err := ask(ctx, func() (*nats.Msg, error) { sends++; return nil, nats.ErrNoResponders }, wait)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	require.Equal(t, 1, sends)
}
