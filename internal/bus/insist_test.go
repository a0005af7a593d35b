package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

func TestInsistTriesAgainWhileThatCanHelp(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	final := errors.New("refused")
	never, always := func(error) bool { return false }, func(error) bool { return true }
	for name, s := range map[string]struct {
		failures []error
		again    func(error) bool
		want     error
		tries    int
	}{
		"at once":                 {nil, nil, nil, 1},
		"a leader is missing":     {[]error{nats.ErrNoResponders, &jetstream.APIError{Code: 503}}, nil, nil, 3},
		"it is refused":           {[]error{nats.ErrTimeout, final}, nil, final, 2},
		"the caller allows it":    {[]error{final}, always, nil, 2},
		"the caller forbids it":   {[]error{nats.ErrTimeout}, never, nats.ErrTimeout, 1},
		"the connection is there": {[]error{nats.ErrReconnectBufExceeded}, nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			got, err := bus.Insist(maxWait(t), c, s.again, func(context.Context) (int, error) {
				if tries++; tries <= len(s.failures) {
					return 0, s.failures[tries-1]
				}
				return tries, nil
			})
			require.ErrorIs(t, err, s.want)
			require.Equal(t, s.want == nil, got == s.tries)
			require.Equal(t, s.tries, tries)
		})
	}
}

func TestInsistEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	ctx, cancel := context.WithCancelCause(maxWait(t))
	gone, tries := errors.New("the caller is gone"), 0
	_, err := bus.Insist(ctx, c, nil, func(context.Context) (any, error) {
		if tries++; tries == 2 {
			time.AfterFunc(0, func() { cancel(gone) })
		}
		return nil, nats.ErrNoResponders
	})
	require.ErrorIs(t, err, nats.ErrNoResponders)
	require.Error(t, ctx.Err())
}

// A try without an answer ends after three seconds, whatever time the caller has.
func TestInsistDoesNotWaitForALostAnswer(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	tries := 0
	_, err := bus.Insist(maxWait(t), c, nil, func(ctx context.Context) (any, error) {
		if tries++; tries == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, tries)
}

func TestInsistGivesAStayingLossUp(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	s := watch(t, c)
	in.Stop()
	require.False(t, <-s.ch)
	tries := 0
	_, err := bus.Insist(maxWait(t), c, nil, func(context.Context) (any, error) {
		tries++
		return nil, c.NATS().Publish("x", nil)
	})
	require.ErrorIs(t, err, nats.ErrReconnectBufExceeded)
	require.Greater(t, tries, 2)
}
