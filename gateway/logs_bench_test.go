//go:build unix

package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	manyLogs   = 1000
	logWriters = 8
	logEvents  = 10 // to each log in an operation
)

// BenchmarkLogs writes to 1,000 logs, of which each has one viewer, beside a bare hub: conditional appends to the same streams,
// an announcement of each, and a subscription that passes it on to a socket. It reports the CPU of this process for each event,
// the NATS server and the clients included, and the events a second of a closed loop.
func BenchmarkLogs(b *testing.B) {
	for name, side := range map[string]func(*testing.B) spent{"bare": bareLogs, "gateway": ourLogs} {
		b.Run(name, func(b *testing.B) {
			var all spent
			for b.Loop() {
				s := side(b)
				all.cpu, all.time = all.cpu+s.cpu, all.time+s.time
			}
			n := float64(b.N * manyLogs * logEvents)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(all.cpu.Seconds()*1e6/n, "cpu-µs/event")
			b.ReportMetric(n/all.time.Seconds(), "events/s")
		})
	}
}

// spent is what one side has cost.
type spent struct{ cpu, time time.Duration }

// toAll has each of the writers write to its share of the logs, until the frames have come.
func toAll(b *testing.B, got *atomic.Int64, write func(log, event int) error) spent {
	b.Helper()
	before, began := cpu(), time.Now()
	for n := range logEvents {
		var wg sync.WaitGroup
		for w := range logWriters {
			wg.Go(func() {
				for i := w; i < manyLogs; i += logWriters {
					require.NoError(b, write(i, n))
				}
			})
		}
		wg.Wait()
	}
	await(b, got, manyLogs*logEvents)
	return spent{cpu() - before, time.Since(began)}
}

func ourLogs(b *testing.B) spent {
	r := start(b)
	defer r.srv.Stop()
	var got atomic.Int64
	all := make([]subject.Log, manyLogs)
	for i := range all {
		all[i] = r.session("default")
		watch(b, r.addr, "/ws?deltas=true&session="+all[i].Entity.String(), &got)
	}
	return toAll(b, &got, func(log, n int) error {
		return r.append(all[log], fmt.Sprint("delta-", n), event.MessageDeltaData{MessageID: "m", RunID: "r", Text: benchText})
	})
}

func bareLogs(b *testing.B) spent {
	conn := sharedBus(b)
	topic := unique()
	addr, end := startLogHub(b, conn, topic)
	defer end()
	var got atomic.Int64
	last, subjects := make([]uint64, manyLogs), make([]string, manyLogs)
	for i := range manyLogs {
		subjects[i] = subject.DefaultPartitions.Event(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(fmt.Sprint(topic, "-", i))})
		watch(b, addr, fmt.Sprint("/", i), &got)
	}
	require.NoError(b, conn.Flush(b.Context()))
	payload := []byte(strings.Repeat("o", 300))
	return toAll(b, &got, func(log, n int) error {
		ack, err := conn.JS().PublishMsg(b.Context(), &nats.Msg{Subject: subjects[log], Data: payload},
			jetstream.WithMsgID(fmt.Sprint(topic, "-", log, "-", n)), jetstream.WithExpectLastSequencePerSubject(last[log]))
		if err != nil {
			return err
		}
		last[log] = ack.Sequence
		return conn.NATS().Publish(fmt.Sprint(topic, ".", log), payload)
	})
}

// startLogHub serves a hub that passes the messages of the topic's subject N on to the socket of /N, until end is called.
func startLogHub(b *testing.B, conn *bus.Conn, topic string) (addr string, end func()) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	var readers sync.WaitGroup
	srv := &http.Server{ReadHeaderTimeout: maxWait, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := &hijacked{ResponseWriter: w}
		sub, err := conn.NATS().Subscribe(topic+"."+r.URL.Path[1:], func(m *nats.Msg) {
			_, _ = h.nc.Write(append([]byte{fin | opText, 126, byte(len(m.Data) >> 8), byte(len(m.Data))}, m.Data...))
		})
		if err != nil {
			return
		}
		socket, err := websocket.Accept(h, r, nil)
		if err != nil {
			return
		}
		readers.Go(func() {
			_, _, _ = socket.Read(ctx)
			_ = socket.CloseNow()
			_ = sub.Unsubscribe()
		})
	})}
	go func() { _ = srv.Serve(l) }()
	return l.Addr().String(), func() {
		cancel()
		_ = srv.Close()
		readers.Wait()
	}
}
