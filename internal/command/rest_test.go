package command_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// never exceeds the length of a test.
const never = 10 * bustest.MaxWait

// consumers returns the names of the consumers of commands.
func consumers(t testing.TB, c *bus.Conn) (out []string) {
	t.Helper()
	s, err := c.JS().Stream(maxWait(t), subject.StreamCommands)
	require.NoError(t, err)
	names := s.ConsumerNames(maxWait(t))
	for n := range names.Name() {
		out = append(out, n)
	}
	require.NoError(t, names.Err())
	return out
}

// atRest waits until all partitions of the replica rest.
func atRest(t testing.TB, r *replica) {
	t.Helper()
	require.Eventually(t, func() bool { return command.Resting(r.ordered) == int(subject.DefaultPartitions) }, bustest.MaxWait, 5*time.Millisecond)
}

// A partition has a consumer only while it has commands. The consumer outlives the pause of a crash loop, so that
// attempts add up.
func TestAPartitionRestsAndWakes(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	r := newRecorder(nil)
	cfg := command.OrderedConfig{RestAfter: 20 * time.Millisecond, LookEvery: never}
	a := newReplica(t, s.URL, "a", cfg, r.handle)
	b := newReplica(t, s.URL, "b", cfg, r.handle)
	require.Empty(t, consumers(t, a.conn), "no command, no consumer")
	one := number(t, cmd.Session, "k", 1)
	durable := "session-" + subject.DefaultPartitions.OfCommand(one.Address()).String()
	for n := 1; n <= 3; n++ {
		send(t, a.conn, number(t, cmd.Session, "k", n))
		require.Equal(t, n, numberOf(r.next(t).Command))
		atRest(t, a)
		atRest(t, b)
		require.Equal(t, []string{durable}, consumers(t, a.conn))
		info, err := a.conn.JS().Consumer(maxWait(t), subject.StreamCommands, durable)
		require.NoError(t, err)
		require.Greater(t, info.CachedInfo().Config.InactiveThreshold, 5*time.Minute)
		if n == 2 { // the server removes it while the partition rests
			require.Eventually(t, func() bool { // a late hint wakes a replica that has nothing to do
				_ = a.conn.JS().DeleteConsumer(maxWait(t), subject.StreamCommands, durable)
				return len(consumers(t, a.conn)) == 0
			}, bustest.MaxWait, 5*time.Millisecond)
			send(t, a.conn, number(t, cmd.Session, "k", 3))
			n++
			require.Equal(t, n, numberOf(r.next(t).Command))
		}
	}
	empty(t, a.conn, subject.StreamCommands)
}

func TestWhatWaitsAtTheStartIsHandled(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	send(t, bustest.Dial(t, s.URL), number(t, cmd.Session, "k", 1))
	r := newRecorder(nil)
	newReplica(t, s.URL, "a", command.OrderedConfig{LookEvery: never}, r.handle)
	require.Equal(t, "c1", r.next(t).ID)
}

func TestALostHintIsFound(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	r := newRecorder(nil)
	a := newReplicaOf(t, s.URL, "a", command.OrderedConfig{LookEvery: 50 * time.Millisecond}, r.handle, command.Deafen)
	send(t, a.conn, number(t, cmd.Session, "k", 1))
	require.Equal(t, "c1", r.next(t).ID)
}

// Queues are measured whether partitions rest or not.
func TestDepthsOfPartitionsThatRest(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, s.URL)
	send(t, c, number(t, cmd.Session, "k", 1), number(t, cmd.Session, "k", 2), number(t, cmd.Task, "k", 1))
	got, err := command.Depths(maxWait(t), c)
	require.NoError(t, err)
	require.Equal(t, map[string]command.Depth{"session": {Pending: 2}, "task": {Pending: 1}}, got)

	on := newLatch()
	r := newRecorder(func(call) error { <-on.ch; return nil })
	newReplica(t, s.URL, "a", command.OrderedConfig{}, r.handle)
	r.next(t)
	got, err = command.Depths(maxWait(t), c)
	on.open()
	require.NoError(t, err)
	require.Equal(t, map[string]command.Depth{"session": {Pending: 1, Out: 1}, "task": {Pending: 1}}, got)
	r.next(t)
}
