package eventlog

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// The benchmarks come in pairs: the event log and, under the same load in the same run, raw NATS. The server runs in
// a separate process, as in production, so that ns/op and allocations are those of the client.

// benchText makes an event of about 300 bytes.
const benchText = "the quick brown fox jumps over"

func benchServer(b *testing.B) *bus.Conn {
	b.Helper()
	r := newRig(b, 1)
	conn := r.connect(b)
	b.ReportAllocs()
	return conn
}

func benchEvent(log subject.Log, n int) event.Event {
	return newEvent(log, strconv.Itoa(n), delta("m", benchText))
}

// appendN appends n events one after the other.
func appendN(b *testing.B, w *Writer, n int) {
	for i := range n {
		sent := false
		err := w.Append(b.Context(), func() ([]event.Event, error) {
			if sent {
				return nil, nil
			}
			sent = true
			return []event.Event{benchEvent(w.log, i)}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// rawAppendN is the same with jetstream.PublishMsg and nothing else: no announcement,
// no state, no recovery.
func rawAppendN(b *testing.B, js jetstream.JetStream, log subject.Log, n int) {
	last := uint64(0)
	for i := range n {
		ev := benchEvent(log, i)
		ev.Sequence = uint64(i + 1)
		raw, err := entry.Encode(ev)
		if err != nil {
			b.Fatal(err)
		}
		ack, err := js.PublishMsg(b.Context(), &nats.Msg{Subject: subject.DefaultPartitions.Event(log), Data: raw, Header: nats.Header{
			event.HeaderSeq: {strconv.Itoa(i + 1)}, event.HeaderType: {string(ev.Type)},
		}}, jetstream.WithMsgID(ev.DedupeID()), jetstream.WithExpectLastSequencePerSubject(last))
		if err != nil {
			b.Fatal(err)
		}
		last = ack.Sequence
	}
}

func BenchmarkAppendOneLog(b *testing.B) {
	b.Run("eventlog", func(b *testing.B) {
		s := newStore(b, benchServer(b), Options{})
		b.ResetTimer()
		appendN(b, s.Writer(testLog("one"), nil), b.N)
		perSecond(b, "events/s", b.N)
	})
	b.Run("raw", func(b *testing.B) {
		conn := benchServer(b)
		b.ResetTimer()
		rawAppendN(b, conn.JS(), testLog("one"), b.N)
		perSecond(b, "events/s", b.N)
	})
}

func BenchmarkAppend64Logs(b *testing.B) {
	const logs = 64
	run := func(b *testing.B, one func(log subject.Log, n int)) {
		b.ResetTimer()
		var wg sync.WaitGroup
		for i := range logs {
			wg.Go(func() { one(testLog(fmt.Sprintf("l%d", i)), b.N/logs+1) })
		}
		wg.Wait()
		perSecond(b, "events/s", (b.N/logs+1)*logs)
	}
	b.Run("eventlog", func(b *testing.B) {
		s := newStore(b, benchServer(b), Options{})
		run(b, func(log subject.Log, n int) { appendN(b, s.Writer(log, nil), n) })
	})
	b.Run("raw", func(b *testing.B) {
		conn := benchServer(b)
		run(b, func(log subject.Log, n int) { rawAppendN(b, conn.JS(), log, n) })
	})
}

// BenchmarkDeltas writes pieces of text as fast as it can: one op is one piece.
func BenchmarkDeltas(b *testing.B) {
	s := newStore(b, benchServer(b), Options{})
	log := testLog("deltas")
	w := s.Writer(log, nil)
	b.ResetTimer()
	d := w.Deltas(b.Context(), 0, func(n int, text string) (event.Event, error) {
		return newEvent(log, strconv.Itoa(n), delta("m", text)), nil
	}, nil)
	for range b.N {
		if err := d.Write(benchText); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, d.Close())
	perSecond(b, "pieces/s", b.N)
	b.ReportMetric(float64(b.N)/float64(w.Seq()), "pieces/event")
}

// counter is a Sink that counts and signals when it has seen them all.
type counter struct {
	left atomic.Int64
	done *sync.WaitGroup
}

func (c *counter) Deliver(batch []*Entry) int {
	n := int64(0)
	for _, e := range batch {
		n += int64(e.Sequence - e.From + 1)
	}
	if c.left.Add(-n) == 0 {
		c.done.Done()
	}
	return len(batch)
}
func (c *counter) Truncated(uint64) {}
func (c *counter) Failed(error)     {}
func (c *counter) CaughtUp(uint64)  {}

// BenchmarkFanOut delivers announcements to 1,000 viewers of one log, from the
// dispatcher's channel on: one op is one delivery. The peer is 1,000 subscriptions of
// raw NATS on one connection, which is what a gateway without a shared tail has.
func BenchmarkFanOut(b *testing.B) {
	const viewers = 1000
	b.Run("eventlog", func(b *testing.B) {
		s := newStore(b, benchServer(b), Options{})
		log := testLog("fan")
		events := b.N/viewers + 1
		var ready, done sync.WaitGroup
		done.Add(viewers)
		for range viewers {
			ready.Add(1)
			c := &caughtCounter{counter: counter{done: &done}, ready: &ready}
			c.left.Store(int64(events))
			defer s.Watch(log, Cursor{}, c).Close()
		}
		ready.Wait()
		t := s.tail(tailKey(log))
		t.mu.Lock()
		t.checkAt = time.Now().Add(time.Hour) // these events are not in the stream
		sub := t.sub
		t.mu.Unlock()
		live := make([]*nats.Msg, events)
		for i := range live {
			e := benchEntry(b, log, i)
			live[i] = &nats.Msg{Subject: log.Live(string(e.Type)), Sub: sub, Data: e.Raw, Header: nats.Header{
				event.HeaderSeq: {strconv.FormatUint(e.Sequence, 10)}, event.HeaderStreamSeq: {strconv.FormatUint(e.Stream, 10)},
			}}
		}
		b.ResetTimer()
		for _, m := range live {
			s.inbound <- m
		}
		done.Wait()
		perSecond(b, "deliveries/s", events*viewers)
	})
	b.Run("raw", func(b *testing.B) {
		conn := benchServer(b)
		log := testLog("fan")
		events := b.N/viewers + 1
		ch := make(chan *nats.Msg, 64<<10)
		for range viewers {
			_, err := conn.NATS().ChanSubscribe(log.LiveAll(), ch)
			require.NoError(b, err)
		}
		require.NoError(b, conn.NATS().Flush())
		raw := benchEntry(b, log, 0).Raw
		b.ResetTimer()
		for range events { // one at a time: the client would drop what does not fit
			require.NoError(b, conn.NATS().Publish(log.Live("message.delta"), raw))
			for range viewers {
				<-ch
			}
		}
		perSecond(b, "deliveries/s", events*viewers)
	})
}

type caughtCounter struct {
	counter
	ready *sync.WaitGroup
}

func (c *caughtCounter) CaughtUp(uint64) { c.ready.Done() }

func benchEntry(b *testing.B, log subject.Log, i int) *Entry {
	ev := benchEvent(log, i)
	ev.Sequence = uint64(i + 1)
	raw, err := entry.Encode(ev)
	require.NoError(b, err)
	ev.Stream, ev.From = ev.Sequence, ev.Sequence
	return &Entry{Event: ev, Raw: raw}
}

// BenchmarkReplay brings a viewer from nothing to the end of a log of 1,000: one op
// is one replay.
func BenchmarkReplay(b *testing.B) {
	const events = 1000
	log := testLog("replay")
	replay := func(s *Store, n int) {
		for range n {
			var done sync.WaitGroup
			done.Add(1)
			c := &counter{done: &done}
			c.left.Store(events)
			v := s.Watch(log, Cursor{}, c)
			done.Wait()
			v.Close()
		}
	}
	prepare := func(b *testing.B, ring int) (*bus.Conn, *Store) {
		conn := benchServer(b)
		s := newStore(b, conn, Options{Ring: ring, RingBytes: 8 << 20, Linger: time.Hour})
		appendN(b, s.Writer(log, nil), events)
		return conn, s
	}
	b.Run("ring", func(b *testing.B) {
		_, s := prepare(b, 2*events)
		// Without a viewer while they were written the ring is filled from behind.
		for range 8 {
			replay(s, 1)
		}
		s.tail(tailKey(log)).warm(b, s, events)
		b.ResetTimer()
		replay(s, b.N)
		perSecond(b, "events/s", b.N*events)
	})
	b.Run("jetstream", func(b *testing.B) {
		_, s := prepare(b, 1)
		b.ResetTimer()
		replay(s, b.N)
		perSecond(b, "events/s", b.N*events)
	})
	b.Run("raw-ordered-consumer", func(b *testing.B) {
		conn, _ := prepare(b, 1)
		b.ResetTimer()
		for range b.N {
			rawReplay(b, conn, log, events)
		}
		perSecond(b, "events/s", b.N*events)
	})
}

// warm reads the log once more and puts all of it into the ring.
func (t *tail) warm(b *testing.B, s *Store, events int) {
	var all []*Entry
	require.NoError(b, s.Read(b.Context(), t.log, Cursor{}, func(e *Entry) error { all = append(all, e); return nil }))
	t.recall(all)
	require.Equal(b, events, t.ring.Len())
}

func rawReplay(b *testing.B, conn *bus.Conn, log subject.Log, events int) {
	c, err := conn.JS().OrderedConsumer(b.Context(), subject.DefaultPartitions.Stream(log), jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject.DefaultPartitions.Event(log)}})
	require.NoError(b, err)
	it, err := c.Messages()
	require.NoError(b, err)
	for range events {
		m, err := it.Next()
		require.NoError(b, err)
		_, _ = io.Discard.Write(m.Data())
	}
	it.Stop()
}

func BenchmarkDecode(b *testing.B) {
	e := benchEntry(b, testLog("decode"), 1)
	b.ReportAllocs()
	for range b.N {
		if _, err := entry.Decode(e.Subject, e.Sequence, e.Stream, e.Raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMergeDeltas(b *testing.B) {
	log := make([]*Entry, pageCount)
	for i := range log {
		log[i] = benchEntry(b, testLog("merge"), i)
	}
	b.ReportAllocs()
	for range b.N {
		entry.Merge(log)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pageCount, "ns/event")
}

func perSecond(b *testing.B, unit string, n int) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), unit)
}
