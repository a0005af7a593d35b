// Package upstream holds what every model provider behind HTTP has in common:
// how failures become faults, how long a silent provider is waited for, and
// that no key gets into an error or a log.
package upstream

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/services/model"
)

const (
	// defaultFirst lets a CPU-bound local server read a prompt of 8,000 tokens at 30 a second.
	defaultFirst = 5 * time.Minute
	// defaultIdle is far above a token a second, the slowest model that anybody
	// waits for, and leaves room for models that think without a word.
	defaultIdle = 2 * time.Minute
	// maxIdleConns keeps a connection for each call of a busy worker; the default of two would dial anew.
	maxIdleConns = 32
	// maxConnect leaves room for two lost packets, and leaves time to other requests.
	maxConnect = 10 * time.Second
	// idleConn is below the minute and more after which providers' load balancers drop a connection.
	idleConn = 50 * time.Second
)

// Client makes the calls of one model. It may be used from any number of goroutines.
type Client struct {
	HTTP *http.Client // follows no redirects: they would carry the key elsewhere

	scrub       func(string) string
	first, idle time.Duration
}

// New returns a client. The key is the one to be kept out of errors and logs.
func New(key string, env model.Env) *Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		DialContext:         (&net.Dialer{Timeout: maxConnect}).DialContext,
		TLSHandshakeTimeout: maxConnect, IdleConnTimeout: idleConn, MaxIdleConnsPerHost: maxIdleConns,
	}
	return &Client{
		HTTP: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		scrub: scrubber(key),
		first: or(env.FirstTimeout, defaultFirst), idle: or(env.IdleTimeout, defaultIdle),
	}
}

// Close releases idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Do makes one attempt and returns the text that it has put into its sink. The error is
// as model.Model promises.
func (c *Client) Do(ctx context.Context, onText func(string) error, attempt func(context.Context, *Sink) error) (string, error) {
	s := &Sink{onText: onText}
	err := attempt(ctx, s)
	switch {
	case err == nil:
		return s.text.String(), nil
	case s.err != nil:
		return "", s.err
	case ctx.Err() != nil:
		return "", model.Ended(ctx)
	}
	return "", c.classify(err)
}

func or(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}
