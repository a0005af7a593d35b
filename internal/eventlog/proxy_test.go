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
// moment: when a publish has been passed on and nothing has come back yet.
type proxy struct {
	target string
	l      net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	armed bool
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
			if up && bytes.Contains(buf[:n], []byte("HPUB evt.")) && p.strike() {
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

// strike reports whether the proxy is armed and disarms it.
func (p *proxy) strike() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	armed := p.armed
	p.armed = false
	if armed {
		p.hits++
	}
	return armed
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
	p.mu.Lock()
	p.armed = true
	before := p.hits
	p.mu.Unlock()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.hits > before
	}, time.Minute, time.Millisecond)
}
