package eventlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// together returns n logs of one stream.
func together(n int) []subject.Log {
	all := []subject.Log{testLog("t0")}
	for i := 1; len(all) < n; i++ {
		if log := testLog(fmt.Sprintf("t%d", i)); subject.DefaultPartitions.Stream(log) == subject.DefaultPartitions.Stream(all[0]) {
			all = append(all, log)
		}
	}
	return all
}

// long stores n entries in the first log, between those of the others.
func long(t *testing.T, s *Store, logs []subject.Log, n int, random *rand.Rand) {
	t.Helper()
	ends := make([]uint64, len(logs))
	for ends[0] < uint64(n) {
		i := random.IntN(len(logs))
		ends[i]++
		ev := notice(logs[i], fmt.Sprintf("%d-%d", i, ends[i]))
		ev.Sequence = ends[i]
		raw, err := entry.Encode(ev)
		require.NoError(t, err)
		_, err = s.conn.JS().PublishMsgAsync(&nats.Msg{Subject: subject.DefaultPartitions.Event(logs[i]), Data: raw, Header: nats.Header{
			event.HeaderMsgID: {ev.DedupeID()}, event.HeaderSeq: {fmt.Sprint(ends[i])}, event.HeaderType: {string(ev.Type)},
		}}, jetstream.WithStallWait(time.Minute))
		require.NoError(t, err)
	}
	<-s.conn.JS().PublishAsyncComplete()
}

// A position without a stream sequence, as in the bookmark of a person, is found without a scan of the log.
func TestALatePositionIsFoundWithoutAScan(t *testing.T) {
	t.Parallel()
	s := newStore(t, single(t), Options{})
	logs := together(2)
	const n = 4000
	random := rand.New(rand.NewPCG(1, 2))
	long(t, s, logs, n, random)
	asked, err := s.nc.SubscribeSync(directGet(subject.DefaultPartitions.Stream(logs[0])))
	require.NoError(t, err)
	read := func(after Cursor) (got []uint64, requests int) {
		require.NoError(t, s.nc.Flush())
		before, _, err := asked.Pending()
		require.NoError(t, err)
		require.NoError(t, s.Read(t.Context(), logs[0], after, func(e *Entry) error { got = append(got, e.Sequence); return nil }))
		require.NoError(t, s.nc.Flush())
		now, _, err := asked.Pending()
		require.NoError(t, err)
		return got, now - before
	}
	got, requests := read(Cursor{Seq: n - 10})
	require.Len(t, got, 10)
	require.LessOrEqual(t, requests, 3, "the end, a place near it, and the entries: a scan reads %d pages", n/pageCount)
	for range 10 {
		after := random.Uint64N(n)
		got, requests = read(Cursor{Seq: after})
		require.Len(t, got, n-int(after))
		for i, seq := range got {
			require.Equal(t, after+1+uint64(i), seq)
		}
		require.LessOrEqual(t, requests, 8+len(got)/pageCount+1)
	}

	// Expired entries are still noticed, and the others are read.
	var kept uint64 // stream sequence of entry 3000
	require.NoError(t, s.Read(t.Context(), logs[0], Cursor{Seq: 2999}, func(e *Entry) error {
		if e.Sequence == 3000 {
			kept = e.Stream
		}
		return nil
	}))
	stream, err := s.conn.JS().Stream(t.Context(), subject.DefaultPartitions.Stream(logs[0]))
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(kept))) // entries 1 to 2999
	_, requests = read(Cursor{Seq: 3500})
	require.LessOrEqual(t, requests, 8+500/pageCount+1)
	_, _ = read(Cursor{Seq: 2999})
	truncated := s.Read(t.Context(), logs[0], Cursor{Seq: 2500}, func(*Entry) error { return nil })
	var expired *TruncatedError
	require.ErrorAs(t, truncated, &expired)
	require.Equal(t, uint64(3000), expired.First)
	require.ErrorIs(t, s.Read(t.Context(), logs[0], Cursor{Seq: n + 1}, nil), ErrBeyondEnd)
	got, _ = read(Cursor{Seq: n})
	require.Empty(t, got)
}
