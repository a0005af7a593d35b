package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

func TestBootstrapLeavesNoDrift(t *testing.T) {
	c := bustest.Single(t)
	drift, err := bus.Verify(t.Context(), c, bus.DefaultTopology())
	require.NoError(t, err)
	require.Empty(t, drift)
}

func TestClusterBootstraps(t *testing.T) {
	h := bustest.Cluster(t, 3)
	c := h.Conn()
	top := bus.DefaultTopology()
	top.Replicas = 3
	drift, err := bus.Verify(t.Context(), c, top)
	require.NoError(t, err)
	require.Empty(t, drift)
}

func TestDriftIsNamedAndMended(t *testing.T) {
	c := bustest.Single(t)
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	s, err := c.JS().Stream(ctx, "EVT_03")
	require.NoError(t, err)
	cfg := s.CachedInfo().Config
	cfg.MaxAge = time.Hour
	_, err = c.JS().UpdateStream(ctx, cfg)
	require.NoError(t, err)
	drift, err := bus.Verify(ctx, c, bus.DefaultTopology())
	require.NoError(t, err)
	require.Len(t, drift, 1)
	require.Equal(t, "EVT_03 max_age", drift[0].Stream+" "+drift[0].Field)
	require.NoError(t, bus.Bootstrap(ctx, c, bus.DefaultTopology()))
	drift, err = bus.Verify(ctx, c, bus.DefaultTopology())
	require.NoError(t, err)
	require.Empty(t, drift)

	require.NoError(t, c.JS().DeleteStream(ctx, "EVT_03"))
	_, err = c.JS().CreateStream(ctx, jetstream.StreamConfig{Name: "EVT_03", Subjects: []string{"evt.03.x.>"}})
	require.NoError(t, err)
	require.ErrorContains(t, bus.Bootstrap(ctx, c, bus.DefaultTopology()), "stream EVT_03: subjects is evt.03.x.>")
}
