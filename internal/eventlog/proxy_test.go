package eventlog

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is a TCP proxy before a server that can break its connections at the worst
// moment: when a message of the client has been passed on and nothing has come back yet.
type proxy struct {
	target string
	l      net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	armed []byte // a client that says this loses its connection; nil breaks none
	hits  int
	wg    sync.WaitGroup
}

func newProxy(t testing.TB, port int) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{target: fmt.Sprintf("127.0.0.1:%d", port), l: l, conns: make(map[net.Conn]struct{})}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		_ = l.Close()
		p.breakAll()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) serve() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		struck := new(atomic.Bool)
		p.wg.Go(func() { p.pump(server, client, struck, true) })
		p.wg.Go(func() { p.pump(client, server, struck, false) })
	}
}

// pump copies one direction. Once the connection has been struck, the next thing
// that comes from the server, the answer, breaks it.
func (p *proxy) pump(to, from net.Conn, struck *atomic.Bool, up bool) {
	defer p.forget(to)
	defer p.forget(from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if up && p.strike(buf[:n]) {
				struck.Store(true)
			}
			if !up && struck.Load() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// strike reports whether the proxy is armed for what a client says, and disarms it.
func (p *proxy) strike(said []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == nil || !bytes.Contains(said, p.armed) {
		return false
	}
	p.armed = nil
	p.hits++
	return true
}

// arm lets the next connection break whose client says this. It returns the number of connections that are broken already.
func (p *proxy) arm(says string) (hits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = []byte(says)
	return p.hits
}

// struck returns the number of connections that have been broken.
func (p *proxy) struck() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

func (p *proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// breakAll closes all connections now.
func (p *proxy) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// breakNext breaks the connection that publishes next, and waits for it.
func (p *proxy) breakNext(t testing.TB) {
	before := p.arm("HPUB evt.")
	require.Eventually(t, func() bool { return p.struck() > before }, time.Minute, time.Millisecond)
}
