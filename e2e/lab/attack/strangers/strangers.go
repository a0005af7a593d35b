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
	Readers int           `json:"readers"` // readers at a byte a second, one half of Log and the other of Page
	Keys    []string      `json:"keys"`    // of the readers, in turn
	Log     string        `json:"log"`     // path of a log, which is written as it is read
	Page    string        `json:"page"`    // path of a page, which is made as a whole
	Time    time.Duration `json:"time"`
	Longer  time.Duration `json:"longer"` // at most, until the promised load has been delivered
}

// enough is the part of the promised load that has to be delivered.
const enough = 0.9

// Count is what came of it.
type Count struct {
	Opened  int64 `json:"opened"`  // connections without credentials
	Refused int64 `json:"refused"` // of these
	Open    int64 `json:"open"`    // the most at the same time
	Logins  int64 `json:"logins"`  // bad logins that were sent
	Answers int64 `json:"answers"` // to these
	Logs    int64 `json:"logs"`    // the most readers of the log at the same time
	Pages   int64 `json:"pages"`   // the most readers of the page at the same time
	Turned  int64 `json:"turned"`  // reads of the page that were refused: too many, or too much
}

// Short says which part of the promised load was not delivered, empty = none.
func (a Attack) Short(c Count) string {
	for what, n := range map[string][2]int64{
		"sockets": {c.Opened, int64(a.Sockets)}, "logins": {c.Logins, int64(float64(a.Logins) * a.Time.Seconds())},
		"readers of the log": {c.Logs, int64(a.Readers / 2)}, "readers of the page": {c.Pages + c.Turned, int64(a.Readers / 2)},
	} {
		if float64(n[0]) < enough*float64(n[1]) {
			return fmt.Sprintf("%s: %d of %d", what, n[0], n[1])
		}
	}
	return ""
}

const (
	// again is the pause of a connection that has been closed, so that the number of handshakes is bounded.
	again = 10 * time.Second
	// guesses is the number of connections over which bad logins are sent: more than the gateway delays at a time.
	guesses = 1000
	// addresses is the number of clients that the connections claim to be.
	addresses = 250
	maxWait   = 10 * time.Second
)

type attacker struct {
	Attack
	opened, refused, open, most, logins, answered atomic.Int64
	log, page                                     reading
	turned                                        atomic.Int64
}

// reading counts readers that have the beginning of an answer.
type reading struct{ now, most atomic.Int64 }

// Run attacks until the time is over or ctx ends.
func Run(ctx context.Context, a Attack) (Count, error) {
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return Count{}, fmt.Errorf("%s is not a loopback address", a.Addr)
	}
	ctx, cancel := context.WithTimeout(ctx, a.Time+a.Longer)
	defer cancel()
	x := &attacker{Attack: a}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		for err := process.Rest(ctx, a.Time); err == nil && a.Short(x.count()) != ""; {
			err = process.Rest(ctx, 100*time.Millisecond)
		}
	})
	opening := rate.NewLimiter(rate.Limit(max(1, a.Sockets)/5), 100) // all within five seconds
	for i := range a.Sockets {
		wg.Go(func() { x.socket(ctx, i, opening) })
	}
	tries := make(chan struct{})
	wg.Go(func() { x.pace(ctx, tries) })
	for i := range min(guesses, a.Logins) {
		wg.Go(func() { x.guess(ctx, i, tries) })
	}
	for i := range a.Readers {
		path, accept, n := a.Log, "text/event-stream", &x.log
		if i%2 == 1 {
			path, accept, n = a.Page, "application/json", &x.page
		}
		wg.Go(func() { x.read(ctx, path, accept, a.Keys[i/2%len(a.Keys)], n) })
	}
	wg.Wait()
	return x.count(), nil
}

func (x *attacker) count() Count {
	return Count{
		Opened: x.opened.Load(), Refused: x.refused.Load(), Open: x.most.Load(), Logins: x.logins.Load(), Answers: x.answered.Load(),
		Logs: x.log.most.Load(), Pages: x.page.most.Load(), Turned: x.turned.Load(),
	}
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

// pace says when to send a bad login, to whichever connection is open.
func (x *attacker) pace(ctx context.Context, tries chan<- struct{}) {
	trying := rate.NewLimiter(rate.Limit(x.Logins), max(1, x.Logins/5))
	for trying.Wait(ctx) == nil {
		select {
		case tries <- struct{}{}:
		case <-ctx.Done():
		}
	}
}

// guess sends bad logins over connections that stay open as long as the gateway lets them.
func (x *attacker) guess(ctx context.Context, i int, tries <-chan struct{}) {
	for n := i; ctx.Err() == nil; n++ {
		if err := x.guesses(ctx, n, tries); err != nil && process.Rest(ctx, time.Second) != nil {
			return
		}
	}
}

// guesses sends bad logins over one connection, whether or not the earlier ones have been answered.
func (x *attacker) guesses(ctx context.Context, n int, tries <-chan struct{}) error {
	conn, err := x.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- x.answers(conn) }()
	for k := 0; ; k++ {
		select {
		case <-tries:
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
		if _, err := fmt.Fprintf(conn, "GET /api/v1/status HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nAuthorization: Bearer wrong-%d-%d\r\n\r\n",
			x.Addr, client(n+k), n, k); err != nil {
			return err
		}
		x.logins.Add(1)
	}
}

// answers counts the answers of a connection until it ends.
func (x *attacker) answers(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, 1024)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if closed := resp.Body.Close(); err != nil || closed != nil {
			return errors.Join(err, closed)
		}
		x.answered.Add(1)
		if resp.Close {
			return io.EOF
		}
	}
}

// read asks for a path and reads a byte a second.
func (x *attacker) read(ctx context.Context, path, accept, key string, n *reading) {
	for ctx.Err() == nil {
		x.slowly(ctx, path, accept, key, n)
		if process.Rest(ctx, time.Second) != nil {
			return
		}
	}
}

func (x *attacker) slowly(ctx context.Context, path, accept, key string, n *reading) {
	conn, err := x.dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, x.Addr, accept, key); err != nil {
		return
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, status); err != nil {
		return
	}
	switch string(status[len(status)-3:]) {
	case "200":
	case "429", "503":
		x.turned.Add(1)
		return
	default:
		return
	}
	n.most.Store(max(n.most.Load(), n.now.Add(1)))
	defer n.now.Add(-1)
	one := make([]byte, 1)
	for process.Rest(ctx, time.Second) == nil {
		if _, err := conn.Read(one); err != nil {
			return
		}
	}
}

// dial connects; the end of ctx closes the connection.
func (x *attacker) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: maxWait}
	conn, err := d.DialContext(ctx, "tcp", x.Addr)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}
