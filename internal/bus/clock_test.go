package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestTheClockOfTheBus: the clock shows the server's time, and continues without the server.
func TestTheClockOfTheBus(t *testing.T) {
	conn := bare(t, 1)[0]
	require.NoError(t, bus.Bootstrap(maxWait(t), conn, bus.DefaultTopology()))
	c, err := bus.NewClock(t.Context(), conn, subject.StreamCommands, subject.StreamDead)
	require.NoError(t, err)
	near := func() { require.WithinDuration(t, time.Now(), c.Now(), bustest.MaxWait) }
	near()
	first := c.Now()
	require.Equal(t, time.UTC, first.Location())
	require.False(t, c.Now().Before(first))
	c.Close()
	conn.Close()
	near()
}

// TestNoClockWithoutAnAnswer: a process that does not know the bus' time does not guess.
func TestNoClockWithoutAnAnswer(t *testing.T) {
	conn := bare(t, 1)[0]
	_, err := bus.NewClock(t.Context(), conn)
	require.ErrorContains(t, err, "no stream to ask")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = bus.NewClock(ctx, conn, "NO_SUCH_STREAM")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
