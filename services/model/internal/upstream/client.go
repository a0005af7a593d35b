// Package upstream holds the common parts of all model providers behind HTTP: it maps failures to faults, limits the wait
// for a silent provider, and keeps keys out of errors and logs.
package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

const (
	// defaultFirst lets a CPU-bound local server read a prompt of 8,000 tokens at 30 a second.
	defaultFirst = 5 * time.Minute
	// defaultIdle is far above a token a second, the slowest usable model, and leaves room for models that think silently.
	defaultIdle = 2 * time.Minute
	// maxIdleConns keeps a connection for each call of a busy worker; the default of two would dial anew.
	maxIdleConns = 32
	// maxConnect allows for two lost packets, and leaves time for other requests.
	maxConnect = 10 * time.Second
	// idleConn is below the timeout, a minute or more, after which providers' load balancers drop a connection.
	idleConn = 50 * time.Second
)

// New returns a client. It keeps the key out of errors and logs.
func New(key string, env model.Env) *Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		DialContext:         (&net.Dialer{Timeout: maxConnect}).DialContext,
		TLSHandshakeTimeout: maxConnect, IdleConnTimeout: idleConn, MaxIdleConnsPerHost: maxIdleConns,
	}
	return &Client{
		http: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		scrub: scrubber(key),
		first: or(env.FirstTimeout, defaultFirst), idle: or(env.IdleTimeout, defaultIdle),
	}
}

// Close releases idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do makes one attempt and returns the text of its sink. Its errors are those that model.Model promises.
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

// classify maps any error of an attempt to the fault catalogue.
func (c *Client) classify(err error) *model.Failure {
	if s, ok := errors.AsType[*StatusError](err); ok {
		code := s.Class()
		f := c.failure(code, err)
		f.Said.Status, f.Said.Code, f.Said.RequestID = s.Status, c.text(s.Kind, maxName), c.text(s.RequestID, maxName)
		f.Said.Message, f.After = c.text(s.Detail, maxDetail), s.After
		return f
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return c.failure(f.Code, errors.Unwrap(f))
	}
	switch {
	case errors.Is(err, errSilent):
		return c.failure(fault.ModelTimeout, err)
	case errors.Is(err, errTooLong):
		return c.failure(fault.ModelBadReply, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c.failure(fault.ModelCutOff, err)
	}
	return c.failure(fault.ModelFailed, err)
}
