// Package socket is what the terminal's clients of a gateway have in common: a
// WebSocket that is made again when it breaks, for as long as coming back makes
// sense.
package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/coder/websocket"
)

const (
	// readLimit bounds a frame of the server: an answer is one event, and those
	// are far smaller.
	readLimit = 8 << 20
	// dialTimeout covers a slow TLS handshake over a bad line.
	dialTimeout = 10 * time.Second
	// pingInterval and pingTimeout notice a dead line within about half a minute.
	pingInterval = 20 * time.Second
	pingTimeout  = 10 * time.Second
	// maxBackoff keeps a client that waits for a restart from hammering it, and a
	// person from waiting long once it is back.
	maxBackoff = 5 * time.Second
	// giveUp is how long the server may stay away: longer than a rolling restart.
	giveUp = 2 * time.Minute
)

// Keep lives through one connection after the other until ctx ends or coming back
// is pointless. once makes a connection, uses it up and reports whether the server
// greeted; lost is told of the first failure after each greeting. It does not try
// again if the very first connection fails: then nobody listens there.
func Keep(ctx context.Context, once func(context.Context) (greeted bool, err error), lost func(error)) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, maxBackoff
	var since time.Time
	for first := true; ; first = false {
		greeted, err := once(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if final(err, first && !greeted) {
			return closed(err)
		}
		if greeted {
			b.Reset()
			since = time.Time{}
		}
		if since.IsZero() {
			since = time.Now()
			lost(err)
		}
		if time.Since(since) > giveUp {
			return fmt.Errorf("the server did not come back: %w", err)
		}
		if err := Wait(ctx, b.NextBackOff()); err != nil {
			return err
		}
	}
}

// Wait returns after d, or earlier with ctx's error.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// pointless marks an error that coming back would not change.
type pointless struct{ error }

func (p *pointless) Unwrap() error { return p.error }

// Pointless marks err as one that coming back would not change: Keep returns it.
func Pointless(err error) error { return &pointless{err} }

// refused is an answer of the HTTP server that coming back would not change.
type refused struct {
	status int
	err    error
}

func (r *refused) Error() string {
	hint := ""
	switch r.status {
	case http.StatusUnauthorized:
		hint = "; give an API key or token with --token or WAGGLE_TOKEN"
	case http.StatusNotFound:
		hint = "; check the path of --url and the session"
	}
	return fmt.Sprintf("the server refused the connection (HTTP %d %s)%s", r.status, http.StatusText(r.status), hint)
}

func (r *refused) Unwrap() error { return r.err }

// final reports whether trying again is pointless. Close codes from 4400 to 4499
// mean "not as you are", and so do the protocol's own complaints.
func final(err error, nobodyThere bool) bool {
	_, pointless := errors.AsType[*pointless](err)
	if _, ok := errors.AsType[*refused](err); ok || pointless || nobodyThere {
		return true
	}
	code := websocket.CloseStatus(err)
	switch code {
	case websocket.StatusProtocolError, websocket.StatusUnsupportedData,
		websocket.StatusInvalidFramePayloadData, websocket.StatusMessageTooBig:
		return true
	}
	return code >= 4400 && code < 4500
}

// closed puts the end of a connection into words.
func closed(err error) error {
	if c, ok := errors.AsType[websocket.CloseError](err); ok {
		return fmt.Errorf("the server closed the connection: %s (%d)", c.Reason, c.Code)
	}
	return err
}

// Target returns the ws:// or wss:// URL with the query's parameters added.
func Target(raw string, query map[string]string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return "", &refused{http.StatusNotFound, fmt.Errorf("%q is not a ws:// or wss:// URL", raw)}
	}
	q := u.Query()
	for k, v := range query {
		q.Set(k, v)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Dial connects to the target, as whom the token says if there is one.
func Dial(ctx context.Context, target, token string) (*websocket.Conn, error) {
	header := http.Header{"User-Agent": {"waggle-chat"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // Dial closes it
	if err != nil && resp != nil && resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
		return nil, &refused{resp.StatusCode, err}
	}
	if err != nil {
		return nil, Unreachable(bare(target), err)
	}
	conn.SetReadLimit(readLimit)
	return conn, nil
}

// absent says that no server listens, and what to do.
type absent struct {
	url string
	err error
}

func (a *absent) Error() string {
	return fmt.Sprintf("no server answers at %s; start one with \"waggle up\" (make run), or name another with --url", a.url)
}

func (a *absent) Unwrap() error { return a.err }

// Unreachable puts the failure to connect to a server into words.
func Unreachable(url string, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return &absent{url, err}
	}
	return fmt.Errorf("connect to %s: %w", url, err)
}

// bare returns the target without its query.
func bare(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	u.RawQuery = ""
	return u.Redacted()
}

// WriteJSON sends v as one frame.
func WriteJSON(ctx context.Context, conn *websocket.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, b)
}

// KeepAlive closes conn when the other side is silent, until ctx ends.
func KeepAlive(ctx context.Context, conn *websocket.Conn) {
	for Wait(ctx, pingInterval) == nil {
		c, cancel := context.WithTimeout(ctx, pingTimeout)
		err := conn.Ping(c)
		cancel()
		if err != nil && ctx.Err() == nil {
			_ = conn.CloseNow()
			return
		}
	}
}
