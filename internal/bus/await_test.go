package bus_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

func TestAwaitWaitsForTheBootstrap(t *testing.T) {
	t.Parallel()
	conns := bare(t, 2)
	gone, cancel := context.WithCancelCause(maxWait(t))
	enough := errors.New("enough")
	cancel(enough)
	err := bus.Await(gone, conns[0], bus.DefaultTopology())
	require.ErrorIs(t, err, enough)

	done := make(chan error, 2)
	go func() { done <- bus.Await(maxWait(t), conns[0], bus.DefaultTopology()) }()
	go func() { done <- bus.Await(maxWait(t), conns[0], bus.DefaultTopology(), "CMD") }()
	require.NoError(t, bus.Bootstrap(maxWait(t), conns[1], bus.DefaultTopology()))
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

// A service checks only the streams that it uses.
func TestAwaitLooksAtTheNamedStreamsOnly(t *testing.T) {
	t.Parallel()
	c := bare(t, 1)[0]
	_, err := c.JS().CreateStream(maxWait(t), stream(t, bootstrapped(t), "DEAD").Config)
	require.NoError(t, err)
	require.NoError(t, bus.Await(maxWait(t), c, bus.DefaultTopology(), "DEAD"))
}

func bootstrapped(t *testing.T) *bus.Conn {
	c := bare(t, 1)[0]
	require.NoError(t, bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()))
	return c
}

// A process that creates or checks all streams needs the permission.
func TestEveryStreamIsInThePermissions(t *testing.T) {
	t.Parallel()
	var all []string
	names := bootstrapped(t).JS().StreamNames(maxWait(t))
	for name := range names.Name() {
		all = append(all, name)
	}
	require.NoError(t, names.Err())
	for _, role := range []permission.Role{permission.Bootstrap, permission.Gateway, permission.Operator} {
		l, ok := permission.Of(role, subject.DefaultPartitions)
		require.True(t, ok)
		require.ElementsMatch(t, all, l.Streams, role)
	}
}
