//go:build linux

package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// BenchmarkOverload writes to 1,000 watched logs faster than they can be shown: one operation is four bursts of 50 events in
// each, which fill the rings. It reports what the lost announcements cost, and the memory of the process.
func BenchmarkOverload(b *testing.B) {
	const logs, burst, bursts = 1000, 50, 4
	conn := benchServer(b)
	s := newStore(b, conn, Options{})
	w := newStore(b, connect(b, conn.NATS().ConnectedUrl()), Options{})
	all := make([]subject.Log, logs)
	done, ready := make([]sync.WaitGroup, logs), sync.WaitGroup{}
	sinks := make([]*busy, logs)
	ready.Add(logs)
	for i := range all {
		all[i] = testLog(fmt.Sprintf("o%d", i))
		sinks[i] = &busy{caughtCounter{counter: counter{done: &done[i]}, ready: &ready}}
		defer s.Watch(all[i], Cursor{}, sinks[i]).Close()
	}
	ready.Wait()
	seq, took := uint64(0), time.Duration(0)
	var stored [subject.DefaultPartitions]uint64
	one := func() {
		for i := range sinks {
			done[i].Add(1)
			sinks[i].left.Add(burst)
		}
		for range burst {
			seq++
			for _, log := range all {
				e, err := publishRaw(w, log, seq, &stored)
				require.NoError(b, err)
				w.publishLive(log, e)
			}
		}
		from := time.Now()
		for i := range done {
			done[i].Wait()
		}
		took += time.Since(from)
	}
	for b.Loop() {
		for range bursts {
			one()
		}
	}
	n := float64(b.N * bursts)
	b.ReportMetric(took.Seconds()*1e3/n, "late-ms/burst")
	b.ReportMetric((testutil.ToFloat64(s.met.heals.WithLabelValues(healGap))+testutil.ToFloat64(s.met.heals.WithLabelValues(healCheck)))/n, "heals/burst")
	b.ReportMetric(testutil.ToFloat64(s.met.checks.WithLabelValues(checkSlow))/n, "checks/burst")
	b.ReportMetric(float64(s.ringBytes.Load())/(1<<20), "ring-MiB")
	b.ReportMetric(rss(b)/(1<<20), "rss-MiB")
}

// publishRaw stores an event without waiting for the answer. stored counts the events of each stream.
func publishRaw(s *Store, log subject.Log, seq uint64, stored *[subject.DefaultPartitions]uint64) (*Entry, error) {
	ev := newEvent(log, strconv.FormatUint(seq, 10), delta("m", benchText))
	ev.Sequence = seq
	raw, err := entry.Encode(ev)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: subject.DefaultPartitions.Event(log), Data: raw, Header: nats.Header{
		event.HeaderSeq: {strconv.FormatUint(seq, 10)}, event.HeaderType: {string(ev.Type)},
	}}
	stored[subject.DefaultPartitions.Of(log)]++
	ev.Stream, ev.From = stored[subject.DefaultPartitions.Of(log)], seq
	return &Entry{Event: ev, Raw: raw}, s.nc.PublishMsg(m)
}

// rss returns the resident memory of the process.
func rss(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	kib, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	require.NoError(b, err)
	return kib * 1024
}

// busy is a sink that costs 50 µs an event.
type busy struct{ caughtCounter }

func (s *busy) Deliver(batch []*Entry) int {
	for until := time.Now().Add(time.Duration(len(batch)) * 50 * time.Microsecond); time.Now().Before(until); {
	}
	return s.caughtCounter.Deliver(batch)
}
