package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	benchViewers = 1000
	benchWindow  = 32 // messages on their way at most: a closed loop
)

// benchText makes frames of about 300 bytes.
var benchText = strings.Repeat("x", 120)

// BenchmarkFanOut compares the gateway, which appends every message to the log,
// announces, splices and encodes it, with a bare hub: the same sockets behind a core
// NATS subscription that passes bytes through. One operation is one message to 1000
// viewers.
func BenchmarkFanOut(b *testing.B) {
	b.Run("gateway", func(b *testing.B) {
		r := start(b)
		l := r.session("default", "before")
		var got atomic.Int64
		for range benchViewers {
			watch(b, r.addr, "/ws?deltas=true&session="+l.Entity.String(), &got)
		}
		got.Store(0) // greetings
		n := 0
		fanOut(b, &got, func() {
			n++
			require.NoError(b, r.append(l, fmt.Sprint("delta-", n), event.MessageDeltaData{MessageID: "m", RunID: "r", Text: benchText}))
		})
	})
	b.Run("bare hub", func(b *testing.B) {
		conn := bustest.Single(b)
		hub := ws.NewHub(ws.Options{})
		b.Cleanup(hub.Close)
		sockets := make(chan *ws.Socket, benchViewers)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s, err := hub.Accept(w, r, nil)
			if err != nil {
				return
			}
			s.Bind(bareHandler{})
			sockets <- s
			go func() { _, _ = s.Read() }()
		}))
		b.Cleanup(srv.Close)
		var got atomic.Int64
		all := make([]*ws.Socket, 0, benchViewers)
		for range benchViewers {
			watch(b, srv.Listener.Addr().String(), "/", &got)
			all = append(all, <-sockets)
		}
		_, err := conn.NATS().Subscribe("bench.live", func(m *nats.Msg) {
			f := transport.Text(m.Data)
			for _, s := range all {
				s.Send(f)
			}
		})
		require.NoError(b, err)
		payload := []byte(strings.Repeat("y", 300))
		fanOut(b, &got, func() { require.NoError(b, conn.NATS().Publish("bench.live", payload)) })
	})
}

type bareHandler struct{}

func (bareHandler) Low()               {}
func (bareHandler) Tick(time.Time)     {}
func (bareHandler) Control() bool      { return true }
func (bareHandler) Broken()            {}
func (bareHandler) Ended(*fault.Fault) {}

// fanOut publishes b.N messages in a closed loop and waits for all deliveries.
func fanOut(b *testing.B, got *atomic.Int64, publish func()) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		publish()
		await(b, got, int64(i+1-benchWindow)*benchViewers)
	}
	await(b, got, int64(b.N)*benchViewers)
	b.StopTimer()
	deliveries := float64(b.N) * benchViewers
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/deliveries, "ns/delivery")
	b.ReportMetric(deliveries/b.Elapsed().Seconds(), "deliveries/s")
}

func await(b *testing.B, got *atomic.Int64, want int64) {
	b.Helper()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for late := time.After(maxWait); got.Load() < want; {
		select {
		case <-tick.C:
		case <-late:
			b.Fatalf("%d of %d deliveries came", got.Load(), want)
		}
	}
}

// watch opens a WebSocket and counts the frames that come, as cheaply as it can. It
// returns when the server has accepted it.
func watch(b *testing.B, addr, path string, got *atomic.Int64) {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path, addr)
	require.NoError(b, err)
	in := bufio.NewReaderSize(c, 32<<10)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	require.Equal(b, http.StatusSwitchingProtocols, resp.StatusCode)
	if strings.HasPrefix(path, "/ws") { // the gateway greets twice, and then the log is watched
		for range 2 {
			require.NoError(b, skipFrame(in))
		}
	}
	go func() {
		for skipFrame(in) == nil {
			got.Add(1)
		}
	}()
}

// skipFrame reads one frame of a server.
func skipFrame(in *bufio.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:2]); err != nil {
		return err
	}
	n := int(head[1])
	if n == 126 {
		if _, err := io.ReadFull(in, head[2:]); err != nil {
			return err
		}
		n = int(head[2])<<8 | int(head[3])
	}
	_, err := in.Discard(n)
	return err
}
