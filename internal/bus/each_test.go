package bus_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestEachVisitsWhatAStreamHas: all messages or the last of each subject, only those that match, up to the first error.
func TestEachVisitsWhatAStreamHas(t *testing.T) {
	c := bustest.Single(t)
	ctx := maxWait(t)
	log := func(name string) subject.Log {
		return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	}
	one := log("one")
	var two subject.Log // in the same shard
	for i := 0; subject.DefaultPartitions.Of(two) != subject.DefaultPartitions.Of(one) || two.Entity.IsZero(); i++ {
		two = log("two" + string(rune('a'+i)))
	}
	for _, text := range []string{"1", "2", "3"} {
		_, err := c.JS().Publish(ctx, subject.DefaultPartitions.Event(one), []byte(text))
		require.NoError(t, err)
	}
	_, err := c.JS().Publish(ctx, subject.DefaultPartitions.Event(two), []byte("4"))
	require.NoError(t, err)
	read := func(newest bool, filter string) (out []string) {
		require.NoError(t, c.Each(ctx, subject.DefaultPartitions.Stream(one), newest, func(m *bus.Message) error {
			out = append(out, string(m.Data))
			return nil
		}, filter))
		return out
	}
	all := subject.DefaultPartitions.Of(one).EventFilter()
	require.Equal(t, []string{"1", "2", "3", "4"}, read(false, all))
	require.Equal(t, []string{"3", "4"}, read(true, all))
	require.Equal(t, []string{"1", "2", "3"}, read(false, subject.DefaultPartitions.Event(one)))
	enough := errors.New("enough")
	require.ErrorIs(t, c.Each(ctx, subject.DefaultPartitions.Stream(one), false, func(*bus.Message) error { return enough }, all), enough)
	n, err := c.Count(ctx, subject.DefaultPartitions.Stream(one), subject.DefaultPartitions.Event(one), subject.DefaultPartitions.Event(two))
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	require.NoError(t, c.Purge(ctx, subject.DefaultPartitions.Stream(one), subject.DefaultPartitions.Event(one)))
	require.Equal(t, []string{"4"}, read(false, all))
	require.Empty(t, read(false, subject.DefaultPartitions.Event(one)))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, c.Each(ended, subject.DefaultPartitions.Stream(one), false, func(*bus.Message) error { return nil }, all))
}

// TestTheControlClusterMayBeThatOfACell: the buckets are made once, and an existing one stays as it is.
func TestTheControlClusterMayBeThatOfACell(t *testing.T) {
	c := bustest.Single(t)
	top := bus.DefaultTopology()
	top.LeaseTTL *= 2
	for range 2 {
		require.NoError(t, bus.BootstrapControl(maxWait(t), c, top))
	}
	s, err := c.JS().Stream(maxWait(t), subject.BucketStream(subject.BucketDirectory))
	require.NoError(t, err)
	require.Equal(t, bus.DefaultTopology().LeaseTTL, s.CachedInfo().Config.MaxAge)
	drift, err := bus.Verify(maxWait(t), c, bus.DefaultTopology())
	require.NoError(t, err)
	require.Empty(t, drift)
}
