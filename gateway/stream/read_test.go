package stream_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestReadsHaveAnEnd: a read ends with the last event that is asked for, with the log, or where the visit has enough.
func TestReadsHaveAnEnd(t *testing.T) {
	conn := bustest.Dial(t, bustest.Start(t, bus.DefaultTopology()).URL)
	store, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	w := store.Writer(log, nil)
	var all []event.Event
	for i := range 6 {
		e, err := event.New(log, fmt.Sprint("e", i), "test", time.Now(), event.NoticeData{Message: "m"})
		require.NoError(t, err)
		all = append(all, e)
	}
	require.NoError(t, w.Append(t.Context(), func() (next []event.Event, _ error) {
		next, all = all, nil
		return next, nil
	}))
	broken := errors.New("broken")
	seqs := func(after, last, until uint64, end error) (out []uint64, first uint64, err error) {
		first, err = stream.ReadLeft(t.Context(), store, log, eventlog.Cursor{Seq: after}, last, func(e *eventlog.Entry) error {
			if e.Sequence == until {
				return end
			}
			out = append(out, e.Sequence)
			return nil
		})
		return out, first, err
	}
	for name, c := range map[string]struct {
		after, last, until uint64
		end                error
		want               []uint64
	}{
		"to the end of the log":  {after: 3, last: stream.ToEnd, want: []uint64{4, 5, 6}},
		"to an event":            {after: 1, last: 3, want: []uint64{2, 3}},
		"to one that is to come": {after: 4, last: 9, want: []uint64{5, 6}},
		"nothing":                {after: 3, last: 3},
		"nothing at all":         {after: 0, last: 0},
		"enough":                 {after: 0, last: stream.ToEnd, until: 3, end: stream.ErrEnough, want: []uint64{1, 2}},
		"a visit that fails":     {after: 0, last: 2, until: 2, end: broken, want: []uint64{1}},
	} {
		got, first, err := seqs(c.after, c.last, c.until, c.end)
		require.Equal(t, c.want, got, name)
		require.Zero(t, first, name)
		if errors.Is(c.end, broken) {
			require.ErrorIs(t, err, broken)
		} else {
			require.NoError(t, err, name)
		}
	}

	oldest, err := store.Last(t.Context(), log)
	require.NoError(t, err)
	js, err := conn.JS().Stream(t.Context(), subject.DefaultPartitions.Stream(log))
	require.NoError(t, err)
	require.NoError(t, js.Purge(t.Context(), jetstream.WithPurgeSequence(oldest.Stream-1)))
	got, first, err := seqs(2, stream.ToEnd, 0, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{5, 6}, got)
	require.EqualValues(t, 5, first)
	err = stream.Read(t.Context(), store, log, eventlog.Cursor{Seq: 2}, stream.ToEnd, func(*eventlog.Entry) error { return nil })
	require.ErrorAs(t, err, new(*eventlog.TruncatedError))
}
