// Package strangers attacks a gateway from outside: sockets without credentials, bad logins, and readers that hardly
// read. It bounds everything in number and time, and sends to loopback addresses only.
package strangers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// Attack says what to do to whom. A trusted proxy is played: each connection names another address as its client's.
type Attack struct {
	Addr    string        `json:"addr"`
	Sockets int           `json:"sockets"` // connections without credentials, kept open or opened again
	Logins  int           `json:"logins"`  // bad logins per second
	Readers int           `json:"readers"` // readers of a page, with a key, at a byte a second
	Key     string        `json:"key"`     // of the readers
	Page    string        `json:"page"`    // path of the readers' page
	Time    time.Duration `json:"time"`
}

// Count is what came of it.
type Count struct {
	Opened  int64 `json:"opened"`  // connections without credentials
	Refused int64 `json:"refused"` // of these
	Open    int64 `json:"open"`    // the most at the same time
	Logins  int64 `json:"logins"`  // bad logins that were sent
	Reads   int64 `json:"reads"`   // slow reads that were begun
}

const (
	// again is the pause of a connection that has been closed, so that the number of handshakes is bounded.
	again = 10 * time.Second
	// guesses is the number of connections over which bad logins are sent: more than the gateway delays at a time.
	guesses = 1000
	// addresses is the number of clients that the connections claim to be.
	addresses = 250
	patience  = 10 * time.Second
)

type attacker struct {
	Attack
	opened, refused, open, most, logins, reads atomic.Int64
}

// Run attacks until the time is over or ctx ends.
func Run(ctx context.Context, a Attack) (Count, error) {
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return Count{}, fmt.Errorf("%s is not a loopback address", a.Addr)
	}
	ctx, cancel := context.WithTimeout(ctx, a.Time)
	defer cancel()
	x := &attacker{Attack: a}
	var wg sync.WaitGroup
	opening := rate.NewLimiter(rate.Limit(max(1, a.Sockets)/5), 100) // all within five seconds
	for i := range a.Sockets {
		wg.Go(func() { x.socket(ctx, i, opening) })
	}
	trying := rate.NewLimiter(rate.Limit(a.Logins), max(1, a.Logins/50))
	for i := range min(guesses, a.Logins) {
		wg.Go(func() { x.guess(ctx, i, trying) })
	}
	for range a.Readers {
		wg.Go(func() { x.read(ctx) })
	}
	wg.Wait()
	return Count{
		Opened: x.opened.Load(), Refused: x.refused.Load(), Open: x.most.Load(), Logins: x.logins.Load(), Reads: x.reads.Load(),
	}, nil
}

// client names the i-th client's address, of a documentation network.
func client(i int) string { return fmt.Sprintf("203.0.113.%d", 1+i%addresses) }

// socket keeps a connection open that never logs in.
func (x *attacker) socket(ctx context.Context, i int, opening *rate.Limiter) {
	for opening.Wait(ctx) == nil {
		err := x.silent(ctx, i)
		if err != nil && ctx.Err() == nil {
			x.refused.Add(1)
		}
		if process.Rest(ctx, again) != nil {
			return
		}
	}
}

func (x *attacker) silent(ctx context.Context, i int) error {
	conn, err := x.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET /ws/session HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", x.Addr, client(i)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 512)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	x.opened.Add(1)
	x.most.Store(max(x.most.Load(), x.open.Add(1)))
	defer x.open.Add(-1)
	_, _ = io.Copy(io.Discard, in) // until the gateway ends it
	return nil
}

// guess sends bad logins over connections that stay open as long as the gateway lets them.
func (x *attacker) guess(ctx context.Context, i int, trying *rate.Limiter) {
	for n := i; ctx.Err() == nil; n++ {
		if err := x.guesses(ctx, n, trying); err != nil && process.Rest(ctx, time.Second) != nil {
			return
		}
	}
}

func (x *attacker) guesses(ctx context.Context, n int, trying *rate.Limiter) error {
	conn, err := x.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 4096)
	for k := 0; trying.Wait(ctx) == nil; k++ {
		if _, err := fmt.Fprintf(conn, "GET /api/v1/status HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nAuthorization: Bearer wrong-%d-%d\r\n\r\n",
			x.Addr, client(n+k), n, k); err != nil {
			return err
		}
		x.logins.Add(1)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if closed := resp.Body.Close(); err != nil || closed != nil || resp.Close {
			return errors.Join(err, closed)
		}
	}
	return nil
}

// read asks for a page and reads a byte a second.
func (x *attacker) read(ctx context.Context) {
	for ctx.Err() == nil {
		x.page(ctx)
		if process.Rest(ctx, time.Second) != nil {
			return
		}
	}
}

func (x *attacker) page(ctx context.Context) {
	conn, err := x.dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/jsonl\r\nAuthorization: Bearer %s\r\n\r\n", x.Page, x.Addr, x.Key); err != nil {
		return
	}
	x.reads.Add(1)
	one := make([]byte, 1)
	for process.Rest(ctx, time.Second) == nil {
		if _, err := conn.Read(one); err != nil {
			return
		}
	}
}

// dial connects; the end of ctx closes the connection.
func (x *attacker) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	conn, err := d.DialContext(ctx, "tcp", x.Addr)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}
