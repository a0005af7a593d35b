package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/harness/client"
)

const (
	// dialers is how many connections are made at once: enough to keep two cores busy.
	dialers = 64
	// handshake is sent by raw sockets: the key is any 16 bytes.
	handshake = "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n"
	// handshakeTime bounds one connection on a machine that is busy with thousands.
	handshakeTime = 60 * time.Second
	// spareFiles are descriptors for everything but the sockets.
	spareFiles = 2048
)

// RaiseFiles lets this process and those that it starts have so many sockets. It fails
// where the limit may not be raised.
func RaiseFiles(sockets int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	want := uint64(sockets + spareFiles) //nolint:gosec // a small positive number
	if limit.Cur >= want {
		return nil
	}
	limit.Cur, limit.Max = want, max(limit.Max, want)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("%d files: %w", want, err)
	}
	return nil
}

// Sockets opens n sockets that say nothing, each of which has been greeted, and returns
// how long that took. The sockets are bare connections, so that the figures are the
// server's.
func Sockets(ctx context.Context, addr, path, key string, n int) (conns []net.Conn, took time.Duration, err error) {
	conns = make([]net.Conn, n)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialers)
	for i := range conns {
		group.Go(func() (err error) {
			conns[i], err = greet(ctx, addr, path, key)
			return err
		})
	}
	err = group.Wait()
	return conns, time.Since(began), err
}

// greet makes one connection and waits for its first frame.
func greet(ctx context.Context, addr, path, key string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return conn, err
	}
	if _, err := fmt.Fprintf(conn, handshake, path, addr, key); err != nil {
		return conn, err
	}
	in := bufio.NewReaderSize(conn, 1024)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return conn, err
	}
	if err := resp.Body.Close(); err != nil {
		return conn, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return conn, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	_, err = in.ReadByte()
	return conn, err
}

// Viewers are viewers of sessions who come back when their connections end.
type Viewers struct {
	viewers []*viewer
	there   atomic.Int64 // viewers that are attached
}

// viewer watches a session.
type viewer struct {
	conn *client.Reconnecting
	path string

	mu   sync.Mutex
	last uint64
	gaps int
	in   bool
}

// WatchSessions connects n viewers to one gateway, spread over sessions of the first tenant.
// They come back until ctx ends.
func WatchSessions(ctx context.Context, addr string, sessions []string, n int) *Viewers {
	h := &Viewers{viewers: make([]*viewer, n)}
	for i := range h.viewers {
		v := &viewer{path: "/ws?session=" + sessions[i%len(sessions)]}
		v.conn = client.NewReconnecting(client.ReconnectOptions{
			Addrs: []string{addr}, Key: site.KeyOf(site.Tenants[0]), Path: v.resume, Take: func(raw string) { h.take(v, raw) },
			Down: func(error) { h.lost(v) },
		})
		h.viewers[i] = v
		go func() { _ = v.conn.Run(ctx) }() // There counts viewers that give up as missing
	}
	return h
}

// resume returns the path of the next connection.
func (v *viewer) resume() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%s&after=%d", v.path, v.last)
}

// lost notes the end of a viewer's connection.
func (h *Viewers) lost(v *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.in {
		v.in = false
		h.there.Add(-1)
	}
}

func (h *Viewers) take(v *viewer, raw string) {
	f := orbitOf(raw)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case f.Type == "agent_ready" && !v.in:
		v.in = true
		h.there.Add(1)
	case f.Seq > 0 && f.Seq <= v.last:
		v.gaps++
	}
	v.last = max(v.last, f.Seq)
}

// There returns how many viewers are attached.
func (h *Viewers) There() int { return int(h.there.Load()) }

// Allow lets viewers come back to other gateways.
func (h *Viewers) Allow(addrs ...string) {
	for _, v := range h.viewers {
		v.conn.Allow(addrs)
	}
}

// Returned reports whether every viewer has come back since it had come back so often.
func (h *Viewers) Returned(times []int) bool {
	for i, v := range h.viewers {
		if v.conn.Returns() <= times[i] {
			return false
		}
	}
	return h.There() == len(h.viewers)
}

// Times returns how often each viewer has come back.
func (h *Viewers) Times() (out []int) {
	for _, v := range h.viewers {
		out = append(out, v.conn.Returns())
	}
	return out
}

// Behind returns how many viewers have not seen their session up to the position that
// its end has, and how often one saw something twice.
func (h *Viewers) Behind(ends map[string]uint64) (behind, twice int) {
	for _, v := range h.viewers {
		v.mu.Lock()
		if v.last < ends[v.path] {
			behind++
		}
		twice += v.gaps
		v.mu.Unlock()
	}
	return behind, twice
}
