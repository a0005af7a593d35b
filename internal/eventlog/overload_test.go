package eventlog

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Announcements that are lost again and again cost one check of their log, after a pause, and none of the others.
func TestLostAnnouncementsCostOneCheck(t *testing.T) {
	s := newStore(t, single(t), Options{})
	logs := together(2)
	tails := make([]*tail, len(logs))
	s.mu.Lock()
	for i, log := range logs { // never ready, so that the checker leaves them alone
		tails[i] = newTail(s, log)
		s.tails[tails[i].key] = tails[i]
	}
	s.mu.Unlock()
	sub := &nats.Subscription{Subject: logs[0].LiveAll()}
	s.slow(sub)
	first := tails[0].checkAt
	require.False(t, first.IsZero())
	for range 1000 {
		s.slow(sub)
	}
	require.Equal(t, first, tails[0].checkAt)
	require.Equal(t, checkSlow, tails[0].trigger)
	require.True(t, tails[1].checkAt.IsZero())
}

// While one log keeps all announcements from the viewers, each loss of another log is noticed, not only the first in a row,
// which is all that the client library reports.
func TestEveryLossOfAnnouncementsIsNoticed(t *testing.T) {
	t.Parallel()
	s := newStore(t, single(t), Options{Inbound: 1, Check: time.Hour})
	stuck, log := testLog("stuck"), testLog("lossy")
	busy := &stalled{recorder: newRecorder(-1), begun: make(chan struct{}), end: make(chan struct{})}
	defer s.Watch(stuck, Cursor{}, busy).Close()
	defer close(busy.end)
	r := newRecorder(-1)
	defer watch(s, log, Cursor{}, r).Close()
	r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
	busy.wait(t, "caught up", func() bool { return len(busy.caught) == 1 })
	fill(t, s, stuck, 0, 1)
	<-busy.begun
	fill(t, s, stuck, 1, 1) // waits for the dispatcher: now it is full

	fill(t, s, log, 0, 1)
	r.reach(t, 1)
	tail := s.tail(tailKey(log))
	require.Eventually(t, func() bool { // the checks after the first loss are over
		tail.mu.Lock()
		defer tail.mu.Unlock()
		return tail.trigger == checkPeriod
	}, time.Minute, 5*time.Millisecond)
	fill(t, s, log, 1, 1)
	r.reach(t, 2)
	r.exact(t, 0)
}

// stalled is a sink that takes nothing until end is closed.
type stalled struct {
	*recorder
	begun, end chan struct{}
	once       sync.Once
}

func (s *stalled) Deliver(batch []*Entry) int {
	s.once.Do(func() { close(s.begun) })
	<-s.end
	return s.recorder.Deliver(batch)
}

// quietly stores n events without an announcement.
func quietly(t *testing.T, s *Store, log subject.Log, n int) (all []*Entry) {
	t.Helper()
	for i := range n {
		ev := notice(log, fmt.Sprint("q", i+1))
		ev.Sequence = uint64(i + 1)
		raw, err := entry.Encode(ev)
		require.NoError(t, err)
		ack, err := s.conn.JS().PublishMsg(t.Context(), &nats.Msg{Subject: subject.DefaultPartitions.Event(log), Data: raw, Header: nats.Header{
			event.HeaderMsgID: {ev.DedupeID()}, event.HeaderSeq: {fmt.Sprint(ev.Sequence)}, event.HeaderType: {string(ev.Type)},
		}})
		require.NoError(t, err)
		e, err := entry.Decode(log.Name(), ev.Sequence, ack.Sequence, raw)
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// batches returns the sizes of the reads of the log that were asked for so far.
func batches(t *testing.T, s *Store, asked *nats.Subscription, log subject.Log) (sizes []int) {
	t.Helper()
	require.NoError(t, s.nc.Flush())
	n, _, err := asked.Pending()
	require.NoError(t, err)
	for range n {
		m, err := asked.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		var q getRequest
		require.NoError(t, json.Unmarshal(m.Data, &q))
		if q.NextFor == subject.DefaultPartitions.Event(log) {
			sizes = append(sizes, q.Batch)
		}
	}
	return sizes
}

// A heal reads the events that are missing, and no others.
func TestAHealReadsWhatIsMissing(t *testing.T) {
	s, log := newStore(t, single(t), Options{}), testLog("missing")
	asked, err := s.nc.SubscribeSync(directGet(subject.DefaultPartitions.Stream(log)))
	require.NoError(t, err)
	r := newRecorder(-1)
	defer watch(s, log, Cursor{}, r).Close()
	r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
	uncompared(t, s, log)
	all := quietly(t, s, log, 5)
	s.publishLive(log, all[3])
	r.reach(t, 4)
	s.publishLive(log, all[4])
	r.reach(t, 5)
	r.exact(t, 0)
	require.Equal(t, []int{3}, batches(t, s, asked, log))
}

// A replay of a thousand ordinary events is two reads at most.
func TestGateReadsOfAReplay(t *testing.T) {
	const n = 1000
	conn, log := single(t), testLog("thousand")
	fill(t, newStore(t, conn, Options{}), log, 0, n)
	s := newStore(t, conn, Options{})
	asked, err := s.nc.SubscribeSync(directGet(subject.DefaultPartitions.Stream(log)))
	require.NoError(t, err)
	r := newRecorder(-1)
	defer watch(s, log, Cursor{}, r).Close()
	r.reach(t, n)
	r.exact(t, 0)
	require.LessOrEqual(t, len(batches(t, s, asked, log)), 2)
}

// A replay of what one before it has read comes from memory, wherever it begins.
func TestGateReadsOfARepeatedReplay(t *testing.T) {
	const n = 600
	conn, log := single(t), testLog("again")
	fill(t, newStore(t, conn, Options{}), log, 0, n)
	for _, from := range []uint64{0, 1, 200, 400} {
		s := newStore(t, conn, Options{})
		asked, err := s.nc.SubscribeSync(directGet(subject.DefaultPartitions.Stream(log)))
		require.NoError(t, err)
		var reads [2]int
		for i := range reads {
			r := newRecorder(-1)
			v := watch(s, log, Cursor{Seq: from}, r)
			r.reach(t, n)
			r.exact(t, from)
			v.Close()
			reads[i] = len(batches(t, s, asked, log))
		}
		require.Zero(t, reads[1], "after %d", from)
		require.NoError(t, asked.Unsubscribe())
		s.Close()
	}
}
