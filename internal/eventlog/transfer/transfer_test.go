package transfer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/transfer"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var red, blue = tenant("red"), tenant("blue")

func tenant(s string) id.Tenant {
	t, err := id.ParseTenant(s)
	if err != nil {
		panic(err)
	}
	return t
}

func logOf(t id.Tenant, kind id.Kind, name string) subject.Log {
	return subject.Log{Tenant: t, Kind: kind, Entity: id.EntityFromExternal(name)}
}

// store returns a store over a connection.
func store(t testing.TB, c *bus.Conn) *eventlog.Store {
	t.Helper()
	s, err := eventlog.New(c, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// write appends notices to a log.
func write(t require.TestingT, s *eventlog.Store, log subject.Log, from, n int) {
	w := s.Writer(log, nil)
	for i := from; i < from+n; i++ {
		err := w.Append(context.Background(), func() ([]event.Event, error) {
			ev, err := event.New(log, fmt.Sprintf("e%d", i), "test", time.UnixMilli(int64(i)), event.NoticeData{Level: "info", Message: fmt.Sprintf("%s %d", log, i)})
			return []event.Event{ev}, err
		})
		require.NoError(t, err)
	}
}

// read returns the stored bytes of a log after a position.
func read(t require.TestingT, s *eventlog.Store, log subject.Log, after eventlog.Cursor) (out []string) {
	require.NoError(t, s.Read(context.Background(), log, after, func(e *eventlog.Entry) error {
		out = append(out, string(e.Raw))
		return nil
	}))
	return out
}

// shapes are sets of logs of a tenant: the numbers of their events, by their kind and their name.
var shapes = rapid.MapOfN(rapid.Custom(func(r *rapid.T) subject.Log {
	kinds := []id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam, id.KindInbox, id.KindCall}
	return logOf(red, rapid.SampledFrom(kinds).Draw(r, "kind"), rapid.StringMatching("[a-z]{1,4}").Draw(r, "name"))
}), rapid.IntRange(1, 12), 1, 6)

// rounds is the number of shapes that are copied: each copy opens some hundred consumers.
const rounds = 3

// TestACopyIsExact for any logs of a tenant: the same events under the same seqs, for readers with the positions of the old
// cell, too, also if the cells have different numbers of partitions. The other tenants' logs stay where they are. A copy back works
// at once.
func TestACopyIsExact(t *testing.T) {
	one, two := bustest.Single(t), bustest.SinglePartitions(t, 64)
	from, to := store(t, one), store(t, two)
	for round := range rounds {
		logs := shapes.Example(round)
		for log, n := range logs {
			write(t, from, log, 1, n)
		}
		other := logOf(blue, id.KindSession, fmt.Sprintf("y%d", round))
		write(t, from, other, 1, 2)
		write(t, to, other, 1, 1) // it moves the sequences of the target's streams
		copied, err := transfer.Copy(within(t), one, two, red)
		require.NoError(t, err)
		has, err := transfer.Take(within(t), two, red)
		require.NoError(t, err)
		require.True(t, has.Same(copied), "%v", has.Differ(copied))
		require.Len(t, copied, len(logs))
		for log, n := range logs {
			require.EqualValues(t, n, copied[log].Events)
			all := read(t, from, log, eventlog.Cursor{})
			for _, seq := range []int{0, 1, n / 2, n} {
				for _, stream := range []uint64{0, 1, 1 << 40} { // a position of the old cell
					got := read(t, to, log, eventlog.Cursor{Seq: uint64(seq), Stream: stream})
					require.Equal(t, append([]string(nil), all[seq:]...), got, "after %d.%d", seq, stream)
				}
			}
		}
		require.NoError(t, transfer.Remove(within(t), one, red))
		back, err := transfer.Copy(within(t), two, one, red)
		require.NoError(t, err)
		require.True(t, back.Same(copied))
		require.Len(t, read(t, from, other, eventlog.Cursor{}), 2)
		require.NoError(t, transfer.Remove(within(t), one, red))
		require.NoError(t, transfer.Remove(within(t), two, red))
	}
}

// TestTheNewCellGoesOnWithALog after its copied events.
func TestTheNewCellGoesOnWithALog(t *testing.T) {
	one, two := bustest.Single(t), bustest.Single(t)
	from, to := store(t, one), store(t, two)
	log := logOf(red, id.KindSession, "s")
	write(t, from, log, 1, 3)
	_, err := transfer.Copy(within(t), one, two, red)
	require.NoError(t, err)
	write(t, to, log, 4, 2)
	require.Len(t, read(t, to, log, eventlog.Cursor{}), 5)
	require.Equal(t, read(t, from, log, eventlog.Cursor{}), read(t, to, log, eventlog.Cursor{})[:3])
}

// TestACopyIntoALogFails: it adds to no log that exists.
func TestACopyIntoALogFails(t *testing.T) {
	one, two := bustest.Single(t), bustest.Single(t)
	log := logOf(red, id.KindSession, "s")
	write(t, store(t, one), log, 1, 3)
	write(t, store(t, two), log, 1, 1)
	_, err := transfer.Copy(within(t), one, two, red)
	require.ErrorContains(t, err, "wrong last sequence")
}

// TestALogWithAHoleIsNotCopied.
func TestALogWithAHoleIsNotCopied(t *testing.T) {
	one, two := bustest.Single(t), bustest.Single(t)
	log := logOf(red, id.KindSession, "s")
	for _, seq := range []string{"1", "2", "4"} {
		_, err := one.JS().PublishMsg(within(t), &nats.Msg{Subject: subject.DefaultPartitions.Event(log), Data: []byte("{}"), Header: nats.Header{event.HeaderSeq: {seq}}})
		require.NoError(t, err)
	}
	_, err := transfer.Copy(within(t), one, two, red)
	require.ErrorContains(t, err, "has a hole")
}
