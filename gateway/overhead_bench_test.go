//go:build unix

package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

const (
	fanSockets = 1000
	fanRate    = 20 // events per second where the machine is not saturated
	fanWindow  = 32 // events that may be under way where it is
)

// BenchmarkOverhead shows one log to 1000 sockets of another process, beside a bare
// hub in the same run: coder/websocket for the handshake, a core NATS subscription,
// and the cheapest possible writer. It reports the CPU of this process per delivered
// message, the NATS server in it included, and the ratio of the two.
func BenchmarkOverhead(b *testing.B) {
	for name, events := range map[string]int{"moderate": 60, "saturated": 600} {
		b.Run(name, func(b *testing.B) {
			var bare, ours time.Duration
			for b.Loop() { // the two take turns, so that what disturbs disturbs both
				bare += bareHub(b, &run{events: events, saturated: name == "saturated"})
				ours += ourGateway(b, &run{events: events, saturated: name == "saturated"})
			}
			beside(b, "bare", bare, "gateway", ours, b.N*events*fanSockets, "msg")
		})
	}
}

// beside reports what each of n things has cost a peer and what it has cost us, and the ratio.
func beside(b *testing.B, peer string, its time.Duration, us string, ours time.Duration, n int, thing string) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(its.Seconds()*1e6/float64(n), peer+"-µs/"+thing)
	b.ReportMetric(ours.Seconds()*1e6/float64(n), us+"-µs/"+thing)
	b.ReportMetric(float64(ours)/float64(its), "ratio")
}

// run is one side of the comparison.
type run struct {
	events    int
	saturated bool
	seen      atomic.Int64 // frames that a socket of this process has got, for the pace
}

// paced calls send for each event, at the rate or as fast as they get away, and
// returns the CPU that it took until written says that all are.
func (r *run) paced(send func(), written func() uint64) time.Duration {
	first, seen, before := written(), r.seen.Load(), cpu()
	tick := time.NewTicker(time.Second / fanRate)
	defer tick.Stop()
	for i := range r.events {
		for r.saturated && r.seen.Load()-seen < int64(i-fanWindow) {
			runtime.Gosched()
		}
		if !r.saturated {
			<-tick.C
		}
		send()
	}
	for written()-first < uint64(r.events)*(fanSockets+1) {
		<-tick.C
	}
	return cpu() - before
}

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func ourGateway(b *testing.B, side *run) time.Duration {
	r := start(b)
	defer r.srv.Stop()
	l := r.session("default")
	path := "/ws?session=" + l.Entity.String()
	defer sockets(b, r.addr, path, fanSockets)()
	watch(b, r.addr, path, &side.seen)
	written := func() uint64 { return uint64(r.metric("waggle_gateway_frames_out_total")) }
	eventually(b, "all clients are greeted", func() bool { return written() >= 2*(fanSockets+1) })
	return side.paced(func() { r.many(l, 1) }, written)
}

// floor is the bare hub.
type floor struct {
	mu      sync.Mutex
	conns   []*floorConn
	written atomic.Uint64
	wake    []chan struct{}
	stop    chan struct{}
	wg      sync.WaitGroup
}

type floorConn struct {
	nc    net.Conn
	mu    sync.Mutex
	queue [][]byte
}

// hijacked keeps the socket that the library takes over.
type hijacked struct {
	http.ResponseWriter
	nc net.Conn
}

func (h *hijacked) Hijack() (nc net.Conn, rw *bufio.ReadWriter, err error) {
	nc, rw, err = http.NewResponseController(h.ResponseWriter).Hijack()
	h.nc = nc
	return nc, rw, err
}

func newFloor() *floor {
	f := &floor{stop: make(chan struct{}), wake: make([]chan struct{}, 2*runtime.GOMAXPROCS(0))}
	for i := range f.wake {
		f.wake[i] = make(chan struct{}, 1)
		f.wg.Go(func() { f.shard(i) })
	}
	return f
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := &hijacked{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, nil)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.conns = append(f.conns, &floorConn{nc: h.nc})
	f.mu.Unlock()
	f.wg.Go(func() {
		_, _, _ = ws.Read(context.Background())
		_ = ws.CloseNow()
	})
}

// publish queues a frame for all clients.
func (f *floor) publish(m *nats.Msg) {
	frame := append([]byte{fin | opText, 126, byte(len(m.Data) >> 8), byte(len(m.Data))}, m.Data...)
	f.mu.Lock()
	conns := f.conns
	f.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		c.queue = append(c.queue, frame)
		c.mu.Unlock()
	}
	for _, w := range f.wake {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// shard writes for its share of the connections.
func (f *floor) shard(n int) {
	buf := make([]byte, 0, 32<<10)
	for {
		select {
		case <-f.stop:
			return
		case <-f.wake[n]:
		}
		f.mu.Lock()
		conns := f.conns
		f.mu.Unlock()
		for i := n; i < len(conns); i += len(f.wake) {
			c := conns[i]
			c.mu.Lock()
			queue := c.queue
			c.queue = nil
			c.mu.Unlock()
			if len(queue) == 0 {
				continue
			}
			p := queue[0]
			if len(queue) > 1 {
				p = buf[:0]
				for _, q := range queue {
					p = append(p, q...)
				}
			}
			_, _ = c.nc.Write(p)
			f.written.Add(uint64(len(queue)))
		}
	}
}

// startFloor serves a bare hub until stop is called.
func startFloor(b *testing.B) (f *floor, addr string, stop func()) {
	b.Helper()
	f = newFloor()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	srv := &http.Server{Handler: f, ReadHeaderTimeout: maxWait}
	go func() { _ = srv.Serve(l) }()
	return f, l.Addr().String(), func() {
		close(f.stop)
		_ = srv.Close()
		for _, c := range f.conns {
			_ = c.nc.Close()
		}
		f.wg.Wait()
	}
}

func bareHub(b *testing.B, side *run) time.Duration {
	conn := sharedBus(b)
	f, addr, end := startFloor(b)
	defer end()
	topic := "bench." + unique()
	sub, err := conn.NATS().Subscribe(topic, f.publish)
	require.NoError(b, err)
	defer func() { _ = sub.Unsubscribe() }()
	defer sockets(b, addr, "/", fanSockets)()
	watch(b, addr, "/", &side.seen)
	payload := []byte(strings.Repeat("o", 300))
	return side.paced(func() { require.NoError(b, conn.NATS().Publish(topic, payload)) }, f.written.Load)
}

// BenchmarkConnect opens 1000 sockets from another process, beside the bare hub. It reports the CPU of this process for each:
// on the side of the gateway until the client is greeted and shown the log, which is that of all.
func BenchmarkConnect(b *testing.B) {
	var bare, ours time.Duration
	for b.Loop() {
		bare += bareConnects(b)
		ours += ourConnects(b)
	}
	beside(b, "bare", bare, "gateway", ours, b.N*fanSockets, "socket")
}

func bareConnects(b *testing.B) time.Duration {
	_, addr, end := startFloor(b)
	defer end()
	before := cpu()
	defer sockets(b, addr, "/", fanSockets)()
	return cpu() - before
}

func ourConnects(b *testing.B) time.Duration {
	r := start(b)
	defer r.srv.Stop()
	l := r.session("default")
	before := cpu()
	defer sockets(b, r.addr, "/ws?session="+l.Entity.String(), fanSockets)()
	eventually(b, "all clients are greeted", func() bool { return r.metric("waggle_gateway_frames_out_total") >= 2*fanSockets })
	return cpu() - before
}

// BenchmarkReplay is a client that comes back and has missed messages: as many as
// are still in memory, or more, so that the stream is read. The client's share of
// the CPU is part of the figure, and so is that of the NATS server.
func BenchmarkReplay(b *testing.B) {
	for name, missed := range map[string]int{"500 in memory": 500, "1000 in the log": 1000} {
		b.Run(name, func(b *testing.B) {
			r := start(b)
			l := r.session("default")
			r.many(l, missed)
			query := "session=" + l.Entity.String() + "&after=1"
			length := r.replay(b, query, missed, 0)
			var took []time.Duration
			writes, before := r.metric("waggle_gateway_writes_total"), cpu()
			for b.Loop() {
				began := time.Now()
				r.replay(b, query, missed, length)
				took = append(took, time.Since(began))
			}
			b.ReportMetric((cpu()-before).Seconds()*1e3/float64(b.N), "cpu-ms/replay")
			slices.Sort(took)
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
			b.ReportMetric((r.metric("waggle_gateway_writes_total")-writes)/float64(b.N), "writes/replay")
		})
	}
}

// replay connects and reads so many messages, or so many bytes once it is known
// how many they are, which it returns.
func (r *rig) replay(b *testing.B, query string, messages int, length int64) int64 {
	b.Helper()
	c := r.dial(query)
	defer func() { _ = c.Conn.Close() }()
	c.ready()
	if length > 0 {
		_, err := io.CopyN(io.Discard, c.br, length)
		require.NoError(b, err)
		return length
	}
	for range messages {
		_, payload, err := c.read()
		require.NoError(b, err)
		length += int64(len(frame(fin|opText, payload)) - 4) // without the mask of a client
	}
	return length
}
