package bus_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// shards returns the number of event streams.
func shards(t *testing.T, c *bus.Conn) subject.Partitions {
	var n subject.Partitions
	for name := range c.JS().StreamNames(maxWait(t)).Name() {
		if strings.HasPrefix(name, "EVT_") {
			n++
		}
	}
	return n
}

// TestAnInstallationKeepsItsPartitions: a process with another number neither starts nor changes a stream, whether it may create
// streams or not.
func TestAnInstallationKeepsItsPartitions(t *testing.T) {
	t.Parallel()
	for _, made := range subject.PartitionChoices() {
		t.Run(fmt.Sprint(made), func(t *testing.T) {
			t.Parallel()
			url := bustest.Bare(t)
			c := bustest.DialPartitions(t, url, made)
			bustest.Bootstrap(t, c, bus.DefaultTopology())
			require.Equal(t, made, shards(t, c))
			require.NoError(t, bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()))
			require.NoError(t, bus.Await(maxWait(t), c, bus.DefaultTopology()))
			require.Empty(t, drift(t, c))
			for _, n := range subject.PartitionChoices() {
				if n == made {
					continue
				}
				other := bustest.DialPartitions(t, url, n)
				err := bus.Bootstrap(maxWait(t), other, bus.DefaultTopology())
				require.ErrorIs(t, err, bus.ErrPartitions)
				require.ErrorContains(t, err, fmt.Sprintf("set nats.partitions to %d", made))
				for _, stream := range []string{"EVT_00", "EVT_15", "CMD"} {
					require.ErrorIs(t, bus.Await(maxWait(t), other, bus.DefaultTopology(), stream), bus.ErrPartitions, stream)
				}
			}
			require.Equal(t, made, shards(t, c))
			require.Empty(t, drift(t, c))
		})
	}
}

// TestOneNumberOfPartitionsWins: of processes that start an installation at once with different numbers, those with one number
// continue.
func TestOneNumberOfPartitionsWins(t *testing.T) {
	t.Parallel()
	url := bustest.Bare(t)
	conns, errs := make([]*bus.Conn, 6), make([]error, 6)
	var all sync.WaitGroup
	for i := range conns {
		conns[i] = bustest.DialPartitions(t, url, subject.PartitionChoices()[i%2])
		all.Go(func() { errs[i] = bus.Bootstrap(maxWait(t), conns[i], bus.DefaultTopology()) })
	}
	all.Wait()
	made := shards(t, conns[0])
	for i, err := range errs {
		if conns[i].Partitions() == made {
			require.NoError(t, err)
			require.Empty(t, drift(t, conns[i]))
		} else {
			require.ErrorIs(t, err, bus.ErrPartitions)
		}
	}
}
