package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

const (
	maxBackoff = 2 * time.Second
	// DialTimeout and silence notice a line that leads nowhere. A gateway answers a ping
	// behind the command before it, which may wait 15 s for a leader of the bus.
	DialTimeout = 5 * time.Second
	silence     = 20 * time.Second
	frameLimit  = 4 << 20
)

// line is a client's connection, made again whenever it ends, at each of the gateways in
// turn, with a growing pause and jitter.
type line struct {
	addrs []string
	key   string
	path  func() string                // of the next connection
	open  func(send func(string) bool) // a connection is there; may be nil
	take  func(raw string)

	mu     sync.Mutex
	conn   *websocket.Conn
	opened int      // connections that were made
	ends   []string // why connections ended
}

// run keeps the connection until ctx ends.
func (l *line) run(ctx context.Context, first int) {
	pause := process.Poll
	for turn := first; ctx.Err() == nil; turn++ {
		if l.once(ctx, l.addr(turn)) {
			pause = process.Poll
		}
		t := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // spreads clients
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		pause = min(2*pause, maxBackoff)
	}
}

// addr is where the turn's connection goes.
func (l *line) addr(turn int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addrs[turn%len(l.addrs)]
}

// allow replaces the addresses of further connections.
func (l *line) allow(addrs []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addrs = addrs
}

// once lives through one connection and reports whether there was one.
func (l *line) once(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dialSocket(ctx, addr, l.path(), l.key)
	if err != nil {
		return false
	}
	defer func() { _ = conn.CloseNow() }()
	l.mu.Lock()
	l.conn = conn
	l.opened++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.conn = nil
		l.mu.Unlock()
	}()
	var alive sync.WaitGroup
	defer alive.Wait()
	defer cancel()
	alive.Go(func() { keepAlive(ctx, conn) })
	if l.open != nil {
		l.open(l.send)
	}
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ends = append(l.ends, fmt.Sprintf("%s %s: %v", time.Now().Format(time.TimeOnly), addr, err))
			return true
		}
		l.take(string(raw))
	}
}

// keepAlive ends a connection on which nothing comes back.
func keepAlive(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(silence / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c, cancel := context.WithTimeout(ctx, silence)
		err := conn.Ping(c)
		cancel()
		if err != nil && ctx.Err() == nil {
			_ = conn.CloseNow()
			return
		}
	}
}

// send sends a frame if there is a connection. It may be lost all the same.
func (l *line) send(frame string) bool {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, []byte(frame)) == nil
}

// why says how connections ended.
func (l *line) why() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.ends...)
}

// returns is how often the client has come back.
func (l *line) returns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.opened-1)
}

func dialSocket(ctx context.Context, addr, path, key string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+path, &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key}},
	})
	if err == nil {
		conn.SetReadLimit(frameLimit)
	}
	return conn, err
}
