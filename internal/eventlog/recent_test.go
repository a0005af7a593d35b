package eventlog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// requests counts the requests to JetStream's API since its last call. A server may answer a request before it shows it to nc, but
// shows it before the next message of the same connection: the connections that asked say when all is shown.
func requests(t *testing.T, nc *nats.Conn, asking ...*nats.Conn) func() (subjects []string) {
	t.Helper()
	sub, err := nc.SubscribeSync("$JS.API.>")
	require.NoError(t, err)
	mark, err := nc.SubscribeSync(nc.NewInbox())
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func() (subjects []string) {
		t.Helper()
		for _, c := range asking {
			require.NoError(t, c.Publish(mark.Subject, nil))
		}
		for range asking {
			_, err := mark.NextMsg(bustest.MaxWait)
			require.NoError(t, err)
		}
		n, _, err := sub.Pending()
		require.NoError(t, err)
		for range n {
			m, err := sub.NextMsg(bustest.MaxWait)
			require.NoError(t, err)
			subjects = append(subjects, m.Subject)
		}
		return subjects
	}
}

// The writers of one process read from each other without a request for entries, and without any if they know how far to
// read. The writer of another process needs one request.
func TestWritersOfOneProcessReadNoEntries(t *testing.T) {
	conn := single(t)
	other := connect(t, conn.NATS().ConnectedUrl())
	s, others, log := newStore(t, conn, Options{}), newStore(t, other, Options{}), testLog("turns")
	var a, b, c fold
	first, second, third := s.Writer(log, a.observe), s.Writer(log, b.observe), others.Writer(log, c.observe)
	require.NoError(t, first.Append(t.Context(), missing(a.has, notice(log, "start"))))
	require.NoError(t, second.Sync(t.Context()))
	require.NoError(t, third.Sync(t.Context()))
	asked := requests(t, connect(t, conn.NATS().ConnectedUrl()).NATS(), conn.NATS(), other.NATS())
	asked()
	for i := range 5 {
		require.NoError(t, first.Append(t.Context(), missing(a.has, notice(log, fmt.Sprint("x", i)), notice(log, fmt.Sprint("y", i)))))
		require.Empty(t, asked())
		require.NoError(t, second.SyncTo(t.Context(), first.Cursor()))
		require.Empty(t, asked())
		require.NoError(t, third.SyncTo(t.Context(), first.Cursor()))
		require.Equal(t, []string{directGet(subject.DefaultPartitions.Stream(log))}, asked())

		require.NoError(t, second.Append(t.Context(), missing(b.has, notice(log, fmt.Sprint("z", i)))))
		require.NoError(t, first.Sync(t.Context()))
		require.Equal(t, []string{"$JS.API.STREAM.MSG.GET." + subject.DefaultPartitions.Stream(log)}, asked())
		require.NoError(t, third.SyncTo(t.Context(), first.Cursor()))
		asked()
		require.Equal(t, a.ids, b.ids)
		require.Equal(t, a.ids, c.ids)
	}
}

// ReadOwn takes from memory what this process has appended, up to the end that the leader names, and the rest from the bus.
func TestReadersOfOneProcessReadNoEntries(t *testing.T) {
	conn := single(t)
	other := connect(t, conn.NATS().ConnectedUrl())
	s, others, log := newStore(t, conn, Options{}), newStore(t, other, Options{}), testLog("read")
	var a, b fold
	w, foreign := s.Writer(log, a.observe), others.Writer(log, b.observe)
	require.NoError(t, w.Append(t.Context(), missing(a.has, notice(log, "1"))))
	after := w.Cursor()
	for i := range 100 {
		require.NoError(t, w.Append(t.Context(), missing(a.has, notice(log, fmt.Sprint("x", i)))))
	}
	asked := requests(t, connect(t, conn.NATS().ConnectedUrl()).NATS(), conn.NATS(), other.NATS())
	end := "$JS.API.STREAM.MSG.GET." + subject.DefaultPartitions.Stream(log)
	read := func(s *Store, after Cursor) (ids []string) {
		t.Helper()
		asked()
		require.NoError(t, s.ReadOwn(t.Context(), log, after, func(e *Entry) error {
			ids = append(ids, e.ID)
			return nil
		}))
		return ids
	}
	require.Equal(t, a.ids[1:], read(s, after))
	require.Equal(t, []string{end}, asked())
	require.Equal(t, a.ids[1:], read(others, after))
	require.Equal(t, []string{end, directGet(subject.DefaultPartitions.Stream(log))}, asked())
	require.Equal(t, a.ids, read(s, Cursor{}))
	require.Equal(t, []string{end}, asked(), "from its beginning, too")

	require.NoError(t, foreign.Append(t.Context(), missing(b.has, notice(log, "foreign"))))
	require.Equal(t, append(a.ids[1:], "foreign"), read(s, after), "what another process has appended")
	stop := errors.New("stop")
	require.ErrorIs(t, s.ReadOwn(t.Context(), log, after, func(*Entry) error { return stop }), stop)
	require.ErrorIs(t, s.ReadOwn(t.Context(), log, Cursor{Seq: 500}, func(*Entry) error { return nil }), ErrBeyondEnd)
	require.NoError(t, foreign.Append(t.Context(), missing(b.has, tombstone(log, "end"))))
	require.ErrorIs(t, s.ReadOwn(t.Context(), log, after, func(*Entry) error { return nil }), ErrDeleted)
}

// Recall sends no request: a writer of a process that is alone with the log knows its end. It says no as long as the end that it has read is
// of another process, and once this process may have appended more than it remembers.
func TestRecallKnowsWhatThisProcessHasAppended(t *testing.T) {
	conn := single(t)
	other := connect(t, conn.NATS().ConnectedUrl())
	s, others, log := newStore(t, conn, Options{}), newStore(t, other, Options{}), testLog("recall")
	var a, b, c fold
	first, second, foreign := s.Writer(log, a.observe), s.Writer(log, b.observe), others.Writer(log, c.observe)
	require.False(t, first.Recall(), "it was never read")
	require.NoError(t, first.Append(t.Context(), missing(a.has, notice(log, "1"))))
	require.False(t, second.Recall(), "it was never read")
	require.NoError(t, second.Sync(t.Context()))
	asked := requests(t, connect(t, conn.NATS().ConnectedUrl()).NATS(), conn.NATS(), other.NATS())
	for i := range 5 {
		require.NoError(t, first.Append(t.Context(), missing(a.has, notice(log, fmt.Sprint("x", i)), notice(log, fmt.Sprint("y", i)))))
		require.True(t, second.Recall())
		require.Equal(t, a.ids, b.ids)
		require.NoError(t, second.Append(t.Context(), missing(b.has, notice(log, fmt.Sprint("z", i)))))
		require.True(t, first.Recall())
	}
	require.Empty(t, asked())

	require.NoError(t, foreign.Append(t.Context(), missing(c.has, notice(log, "foreign"))))
	require.True(t, first.Recall(), "it cannot know")
	require.NoError(t, first.Append(t.Context(), missing(a.has, notice(log, "2"))))
	require.Equal(t, append(b.ids, "foreign", "2"), a.ids, "an append finds out")
	require.False(t, first.Recall(), "another process writes the log")
	require.NoError(t, first.Sync(t.Context()))
	require.NoError(t, second.Sync(t.Context()))
	require.True(t, second.Recall(), "it has read what this process has appended last")

	s.recent.forget(log)
	require.False(t, second.Recall(), "what was appended is forgotten")
	require.NoError(t, second.Append(t.Context(), missing(b.has, tombstone(log, "end"))))
	require.False(t, second.Recall(), "deleted")
	require.NoError(t, first.Sync(t.Context()))
	require.False(t, first.Recall(), "deleted")
}

// A log that is not used for a while is forgotten, and the sweep ends with the last one.
func TestRecentForgetsIdleLogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recent
		busy, idle := testLog("busy"), testLog("idle")
		entryOf := func(seq uint64) *Entry {
			return &Entry{Event: event.Event{Sequence: seq, Stream: seq}, Raw: []byte("{}")}
		}
		for _, log := range []subject.Log{busy, idle} {
			r.add(log, entryOf(1))
		}
		at := Cursor{Seq: 1, Stream: 1}
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		for range 10 {
			pass(recentTime / 4)
			_, known := r.since(busy, at)
			require.True(t, known)
		}
		_, known := r.since(idle, at)
		require.False(t, known)
		remembers := func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			require.Equal(t, len(r.logs) > 0, r.bytes > 0)
			require.Equal(t, len(r.logs) > 0, r.sweep != nil)
			return r.bytes > 0
		}
		require.True(t, remembers())
		pass(2 * recentTime)
		_, known = r.since(busy, at)
		require.False(t, known)
		require.False(t, remembers())
		r.add(busy, entryOf(2))
		require.True(t, remembers())
		r.close()
		require.Nil(t, r.sweep)
	})
}

// A position that the log does not have, or has with another event, does not stop a reader from finding the end.
func TestSyncToAWrongPositionFindsTheEnd(t *testing.T) {
	conn := single(t)
	s, others, log := newStore(t, conn, Options{}), newStore(t, connect(t, conn.NATS().ConnectedUrl()), Options{}), testLog("wrong")
	var a, b, c fold
	w, reader, foreign := s.Writer(log, a.observe), s.Writer(log, b.observe), others.Writer(log, c.observe)
	require.NoError(t, w.Append(t.Context(), missing(a.has, notice(log, "1"))))
	for i, wrong := range []func(Cursor) Cursor{
		func(Cursor) Cursor { return Cursor{} },
		func(at Cursor) Cursor { return Cursor{Seq: at.Seq} },
		func(at Cursor) Cursor { return Cursor{Seq: at.Seq, Stream: at.Stream + 1} },
		func(at Cursor) Cursor { return Cursor{Seq: at.Seq + 5, Stream: at.Stream + 5} },
		func(Cursor) Cursor { return Cursor{Seq: 1 << 40, Stream: 1 << 50} },
	} {
		require.NoError(t, w.Append(t.Context(), missing(a.has, notice(log, fmt.Sprint("n", i)))))
		require.NoError(t, reader.SyncTo(t.Context(), wrong(w.Cursor())))
		require.NoError(t, foreign.SyncTo(t.Context(), wrong(w.Cursor())))
		require.Equal(t, a.ids, b.ids)
		require.Equal(t, a.ids, c.ids)
	}
}

// The remembered events of a log that another process has deleted never come back into it.
func TestSyncToMeetsADeletion(t *testing.T) {
	conn := single(t)
	s, others, log := newStore(t, conn, Options{}), newStore(t, connect(t, conn.NATS().ConnectedUrl()), Options{}), testLog("gone")
	var a, b, c fold
	w, reader := s.Writer(log, a.observe), s.Writer(log, b.observe)
	require.NoError(t, w.Append(t.Context(), missing(a.has, notice(log, "1"))))
	require.NoError(t, reader.Sync(t.Context()))
	require.NoError(t, w.Append(t.Context(), missing(a.has, notice(log, "2"))))
	at := w.Cursor()
	require.NoError(t, others.Writer(log, c.observe).Append(t.Context(), missing(c.has, tombstone(log, "end"))))
	require.NoError(t, reader.SyncTo(t.Context(), at))
	require.ErrorIs(t, reader.Append(t.Context(), missing(b.has, notice(log, "3"))), ErrDeleted)
	require.NoError(t, reader.Sync(t.Context()))
	require.True(t, reader.Deleted())
	require.NoError(t, w.Sync(t.Context()))
	require.Nil(t, s.recent.between(log, 1, at), "the memory of a deleted log is empty")
}

func TestRecentEntriesAreBoundedAndDense(t *testing.T) {
	t.Parallel()
	var r recent
	at := func(i int) subject.Log { return testLog(fmt.Sprint("l", i)) }
	put := func(log subject.Log, seq uint64, size int) {
		e := &Entry{Raw: []byte(strings.Repeat("x", size))}
		e.Sequence, e.Stream = seq, 10*seq
		r.add(log, e)
	}
	seqs := func(log subject.Log, after, end uint64) (out []uint64) {
		for _, e := range r.between(log, after, Cursor{Seq: end, Stream: 10 * end}) {
			out = append(out, e.Sequence)
		}
		return out
	}
	for _, seq := range []uint64{3, 4, 5} {
		put(at(0), seq, 1)
	}
	require.Equal(t, []uint64{3, 4, 5}, seqs(at(0), 2, 5))
	require.Equal(t, []uint64{4}, seqs(at(0), 3, 4))
	require.Empty(t, seqs(at(0), 1, 5), "one is missing")
	require.Empty(t, seqs(at(0), 0, 5), "the reader has none")
	require.Empty(t, seqs(at(0), 5, 5), "nothing to read")
	require.Empty(t, seqs(at(0), 4, 6), "the end is unknown")
	require.Nil(t, r.between(at(0), 3, Cursor{Seq: 5, Stream: 51}), "another entry is there")
	put(at(0), 7, 1)
	require.Empty(t, seqs(at(0), 4, 7), "a hole")
	require.Equal(t, []uint64{7}, seqs(at(0), 6, 7))

	for seq := uint64(8); seq < 1000; seq++ {
		put(at(0), seq, 1)
		require.Equal(t, []uint64{seq - 1, seq}, seqs(at(0), seq-2, seq))
	}
	require.LessOrEqual(t, r.bytes, (recentEntries+1)*(entryBytes+1))
	for i := range 2 * recentLogs {
		put(at(i), 1000, 1)
	}
	require.Equal(t, recentLogs, r.order.Len())
	require.Len(t, r.logs, recentLogs)
	put(at(1), 1, recentBytes-entryBytes)
	require.Equal(t, 1, r.order.Len())
	require.LessOrEqual(t, r.bytes, recentBytes)
	put(at(2), 1, 2*recentBytes)
	require.Zero(t, r.bytes)
	require.Zero(t, r.order.Len())
	put(at(3), 1, 1)
	r.forget(at(3))
	require.Zero(t, r.bytes)
}
