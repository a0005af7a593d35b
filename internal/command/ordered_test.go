package command_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestCommandsOfOneKeyAreTriedInPlace(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	fails := 3
	r := newRecorder(func(one call) error {
		if numberOf(one.Command) == 1 && fails > 0 {
			fails--
			return errBroken
		}
		return nil
	})
	a := newReplica(t, s.URL, "a", command.OrderedConfig{Backoff: soon}, r.handle)
	for n := 1; n <= 3; n++ {
		send(t, a.conn, number(t, cmd.Session, "k", n))
	}
	var got []string
	for range 6 {
		c := r.next(t)
		got = append(got, fmt.Sprintf("%s try %d", c.ID, c.Attempt))
	}
	require.Equal(t, []string{"c1 try 1", "c1 try 2", "c1 try 3", "c1 try 4", "c2 try 1", "c3 try 1"}, got)
	empty(t, a.conn, subject.StreamCommands)
}

func TestADeadCommandLetsTheNextPass(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	r := newRecorder(func(one call) error {
		if numberOf(one.Command) == 1 {
			return errBroken
		}
		return nil
	})
	dead := make(chan string, 1)
	a := newReplica(t, s.URL, "a", command.OrderedConfig{
		Backoff: soon, MaxDeliver: 2,
		OnDead: func(_ context.Context, c cmd.Command, reason string) { dead <- c.ID + " " + reason },
	}, r.handle)
	send(t, a.conn, number(t, cmd.Session, "k", 1), number(t, cmd.Session, "k", 2))
	require.False(t, r.next(t).Final)
	require.True(t, r.next(t).Final)
	require.Equal(t, "c1 broken", <-dead)
	require.Equal(t, "c2", r.next(t).ID)
	require.Equal(t, "broken", deadLetters(t, a.conn, 1)[0].Reason)
	empty(t, a.conn, subject.StreamCommands)
}

// A command does not cause failures of the bus.
func TestTroubleOfTheBusDoesNotCount(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	tries := 0
	r := newRecorder(func(call) error {
		if tries++; tries < 10 {
			return fmt.Errorf("append: %w", fault.New(fault.BusUnavailable))
		}
		return nil
	})
	a := newReplica(t, s.URL, "a", command.OrderedConfig{Backoff: soon, MaxDeliver: 2}, r.handle)
	send(t, a.conn, number(t, cmd.Session, "k", 1))
	for range 10 {
		require.Equal(t, 1, r.next(t).Attempt)
	}
	empty(t, a.conn, subject.StreamCommands)
	require.Zero(t, size(t, a.conn, subject.StreamDead))
}

// keysOf returns a key of every partition.
func keysOf(service id.Name) map[subject.Partition]string {
	out := map[subject.Partition]string{}
	for n := 0; len(out) < int(subject.DefaultPartitions); n++ {
		key := fmt.Sprint("k", n)
		c := subject.Command{Service: service, Tenant: id.DefaultTenant, Key: id.EntityFromExternal(key), Verb: cmd.SendMessage}
		if _, ok := out[subject.DefaultPartitions.OfCommand(c)]; !ok {
			out[subject.DefaultPartitions.OfCommand(c)] = key
		}
	}
	return out
}

// In quiet, the owner serves every partition, and another replica does as soon as the owner has gone, in whatever
// way.
func TestPartitionsAreDividedAndTakenOver(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, s.URL)
	var mu sync.Mutex
	servedBy := map[string]string{}
	replicas := map[string]*replica{}
	for _, name := range []string{"a", "b", "c"} {
		replicas[name] = newReplica(t, s.URL, name, command.OrderedConfig{}, func(_ context.Context, c cmd.Command, _ command.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			servedBy[c.Key.String()] = name
			return nil
		})
	}
	n := 0
	round := func() map[string]int {
		n++
		for _, key := range keysOf(cmd.Session) {
			send(t, c, number(t, cmd.Session, key, n))
		}
		empty(t, c, subject.StreamCommands)
		count := map[string]int{}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range servedBy {
			count[name]++
		}
		return count
	}
	division := func(names ...string) {
		t.Helper()
		var got map[string]int
		require.Eventually(t, func() bool { // until the replicas have seen each other
			got = round()
			return len(got) == len(names)
		}, bustest.MaxWait, 20*time.Millisecond)
		t.Logf("%d partitions: %v", int(subject.DefaultPartitions), got)
		for _, name := range names {
			require.Positive(t, got[name])
		}
	}
	division("a", "b", "c")
	require.NoError(t, replicas["b"].lease.Leave(maxWait(t)))
	require.NoError(t, replicas["b"].ordered.Drain(maxWait(t)))
	division("a", "c")
	replicas["c"].conn.NATS().Close() // its lease stays for half a minute
	division("a")
}

func TestStopHandsAnOrderedCommandBackAtOnce(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	cfg := command.OrderedConfig{AckWait: 10 * bustest.MaxWait}
	a := newRecorder(func(one call) error { <-one.ctx.Done(); return one.ctx.Err() })
	first := newReplica(t, s.URL, "a", cfg, a.handle)
	send(t, first.conn, number(t, cmd.Session, "k", 1), number(t, cmd.Session, "k", 2))
	a.next(t)
	b := newRecorder(nil)
	newReplica(t, s.URL, "b", cfg, b.handle)
	first.ordered.Stop()
	one := b.next(t)
	require.Equal(t, "c1", one.ID)
	require.Equal(t, 2, one.Attempt)
	require.Equal(t, "c2", b.next(t).ID)
}

func TestDrainLeavesAFailingCommandToOthers(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	cfg := command.OrderedConfig{AckWait: 10 * bustest.MaxWait, Backoff: []time.Duration{10 * bustest.MaxWait}}
	a := newRecorder(func(call) error { return errBroken })
	first := newReplica(t, s.URL, "a", cfg, a.handle)
	send(t, first.conn, number(t, cmd.Session, "k", 1))
	a.next(t)
	require.NoError(t, first.ordered.Drain(maxWait(t)))
	b := newRecorder(nil)
	newReplica(t, s.URL, "b", cfg, b.handle)
	require.Equal(t, "c1", b.next(t).ID)
	empty(t, first.conn, subject.StreamCommands)
}

func TestAnOrderedConsumerThatVanishesIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	r := newRecorder(nil)
	a := newReplica(t, s.URL, "a", command.OrderedConfig{}, r.handle)
	one := number(t, cmd.Session, "k", 1)
	send(t, a.conn, one)
	r.next(t)
	empty(t, a.conn, subject.StreamCommands)
	durable := "session-" + subject.DefaultPartitions.OfCommand(one.Address()).String()
	require.NoError(t, a.conn.JS().DeleteConsumer(maxWait(t), subject.StreamCommands, durable))
	send(t, a.conn, number(t, cmd.Session, "k", 2))
	require.Equal(t, "c2", r.next(t).ID)
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	require.NoError(t, c.JS().DeleteStream(maxWait(t), subject.StreamCommands))
	require.NoError(t, c.JS().DeleteStream(maxWait(t), subject.TimerStream(cmd.Session)))
	w := command.NewWorkers(c, command.WorkersConfig{Service: cmd.Worker}, nil)
	require.ErrorContains(t, w.Start(maxWait(t)), "stream CMD")
	tm := command.NewTimers(c, cmd.Session, log(t), nil)
	require.ErrorContains(t, tm.Start(maxWait(t)), "stream TIMER")
	err := command.NewSender(c).Send(shortly(t), number(t, cmd.Worker, "k", 1))
	require.ErrorIs(t, err, fault.New(fault.BusUnavailable))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, errors.Is(err, fault.New(fault.Internal)))
}

// shortly returns a context that ends within the budget of a sender.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
