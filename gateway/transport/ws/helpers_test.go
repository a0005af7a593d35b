package ws

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxWait is how long a test waits for what has to happen; only a failure takes it.
const maxWait = 60 * time.Second

// record is a Handler that remembers.
type record struct {
	low      chan struct{}
	reasons  chan *fault.Fault
	ticks    atomic.Int64
	controls atomic.Int64
	allowed  int64 // control frames; 0 = any number
}

func (r *record) Low() {
	select {
	case r.low <- struct{}{}:
	default:
	}
}
func (r *record) Tick(time.Time)       { r.ticks.Add(1) }
func (r *record) Ended(f *fault.Fault) { r.reasons <- f }

// Control counts.
func (*record) Broken() {}

func (r *record) Control() bool { n := r.controls.Add(1); return r.allowed == 0 || n <= r.allowed }

func newRecord() *record {
	return &record{low: make(chan struct{}, 1), reasons: make(chan *fault.Fault, 4)}
}

// side is the server's end of a connection, with a reader that does what the
// gateway's does.
type side struct {
	*Socket
	*record
	got   chan string // messages; closed when the reader is done
	large chan *Oversize
	kept  chan kept // messages instead of got, if the rig keeps them
	keep  bool
	last  error // valid then
}

// kept is a message that the reader has kept.
type kept struct {
	message []byte
	release func()
}

type rig struct {
	t    testing.TB
	hub  *Hub
	srv  *httptest.Server
	ends chan *side
	wg   sync.WaitGroup
	set  func(*record)

	limits Limits // of its sockets
	keep   bool   // they keep messages
}

func newRig(t testing.TB, o Options, secure bool) *rig {
	r := &rig{t: t, hub: NewHub(o), ends: make(chan *side, 2000)}
	r.srv = httptest.NewUnstartedServer(http.HandlerFunc(r.accept))
	if secure {
		r.srv.StartTLS()
	} else {
		r.srv.Start()
	}
	t.Cleanup(func() {
		r.hub.Close()
		r.srv.Close()
		r.wg.Wait()
	})
	return r
}

func (r *rig) accept(w http.ResponseWriter, q *http.Request) {
	s, err := r.hub.Accept(w, q, []string{"waggle"})
	if err != nil {
		return
	}
	e := &side{Socket: s, record: newRecord(), got: make(chan string, 1000), large: make(chan *Oversize, 100), kept: make(chan kept, 100), keep: r.keep}
	if r.limits != (Limits{}) {
		s.Limit(r.limits)
	}
	if r.set != nil {
		r.set(e.record)
	}
	s.Bind(e.record)
	r.wg.Go(e.read)
	r.ends <- e
}

func (e *side) read() {
	defer close(e.got)
	for {
		b, err := e.Read()
		if o, ok := errors.AsType[*Oversize](err); ok {
			e.large <- o
			continue
		}
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			e.last = err
			e.Finish(fault.Lookup(f.Code).Close, f.Message)
			return
		}
		if err != nil {
			e.last = err
			return
		}
		if e.keep {
			b, release := e.Keep(b)
			e.kept <- kept{b, release}
			continue
		}
		e.got <- string(b)
	}
}

// wait returns the server's end of the connection that was made last.
func (r *rig) wait() *side {
	r.t.Helper()
	select {
	case e := <-r.ends:
		return e
	case <-time.After(maxWait):
		require.FailNow(r.t, "no connection arrived")
		return nil
	}
}

func (r *rig) pair() (*peer, *side) {
	p := r.dial()
	return p, r.wait()
}

func (e *side) over(t testing.TB) {
	t.Helper()
	select {
	case <-e.Done():
	case <-time.After(maxWait):
		require.FailNow(t, "the connection is not over")
	}
}

// readerDone waits for the reader and returns its last error.
func (e *side) readerDone(t testing.TB) error {
	t.Helper()
	limit := time.After(maxWait)
	for {
		select {
		case _, ok := <-e.got:
			if !ok {
				return e.last
			}
		case <-limit:
			require.FailNow(t, "the reader is not done")
		}
	}
}

func (e *side) fault(t testing.TB) *fault.Fault {
	t.Helper()
	select {
	case f := <-e.reasons:
		return f
	case <-time.After(maxWait):
		require.FailNow(t, "the hub did not end the socket")
		return nil
	}
}

// peer is a client on the level of frames.
type peer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

const request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: waggle\r\n\r\n"

func (r *rig) dial() *peer { return r.dialWith(nil) }

// dialWith sends first in the same segment as the handshake.
func (r *rig) dialWith(first []byte) *peer {
	r.t.Helper()
	c, err := net.Dial("tcp", r.srv.Listener.Addr().String())
	require.NoError(r.t, err)
	require.NoError(r.t, c.(*net.TCPConn).SetReadBuffer(256<<10))
	if r.srv.TLS != nil {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	r.t.Cleanup(func() { c.Close() })
	require.NoError(r.t, c.SetDeadline(time.Now().Add(4*maxWait)))
	_, err = c.Write(append([]byte(request), first...))
	require.NoError(r.t, err)
	p := &peer{r.t, c, bufio.NewReader(c)}
	line, err := p.in.ReadString('\n')
	require.NoError(r.t, err)
	require.Contains(r.t, line, " 101 ")
	for strings.TrimSpace(line) != "" {
		line, err = p.in.ReadString('\n')
		require.NoError(r.t, err)
	}
	return p
}

// masked returns a frame of a client; b0 is the first byte, with FIN and opcode.
func masked(b0 byte, payload []byte) []byte {
	b := appendHeader(nil, b0, len(payload))
	b[1] |= 0x80
	mask := [4]byte{1, 2, 3, 4}
	b = append(b, mask[:]...)
	for i, c := range payload {
		b = append(b, c^mask[i&3])
	}
	return b
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	_, err := p.Write(b)
	require.NoError(p.t, err)
}

func (p *peer) text(s string) { p.t.Helper(); p.send(masked(opText, []byte(s))) }

func (p *peer) next() (op byte, payload []byte, err error) {
	var h [8]byte
	if _, err = io.ReadFull(p.in, h[:2]); err != nil {
		return 0, nil, err
	}
	op = h[0]
	n := uint64(h[1])
	switch n {
	case 126:
		_, err = io.ReadFull(p.in, h[:2])
		n = uint64(binary.BigEndian.Uint16(h[:]))
	case 127:
		_, err = io.ReadFull(p.in, h[:])
		n = binary.BigEndian.Uint64(h[:])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(p.in, payload)
	return op, payload, err
}

// closed reads up to the close frame, answers it if asked to, and returns it.
func (p *peer) closed(answer bool) (code int, reason string) {
	p.t.Helper()
	for {
		op, b, err := p.next()
		require.NoError(p.t, err)
		if op != opClose {
			continue
		}
		if answer {
			_, _ = p.Write(masked(opClose, b))
		}
		code, _ = closeOf(append([]byte{opClose, byte(len(b))}, b...))
		return code, string(b[min(2, len(b)):])
	}
}

// gone reads until the connection ends.
func (p *peer) gone() {
	p.t.Helper()
	_, err := io.Copy(io.Discard, p.in)
	if ne, ok := errors.AsType[net.Error](err); ok {
		require.False(p.t, ne.Timeout(), "the connection does not end")
	}
}

func code(n int) []byte { return []byte{byte(n >> 8), byte(n & 0xff)} }
