// Package upstream holds the common parts of all model providers behind HTTP: it maps failures to faults, limits the wait
// for a silent provider, and keeps keys out of errors and logs.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
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

// Client makes the calls of one model. It is safe for concurrent use.
type Client struct {
	http *http.Client // follows no redirects: they would send the key elsewhere

	scrub       func(string) string
	members     map[string]json.RawMessage // of each request
	first, idle time.Duration
}

// New returns a client. It keeps the secrets of the access out of errors and logs. An error says which setting is wrong.
func New(access model.Access, env model.Env) (*Client, error) {
	proxy, err := access.ProxyURL()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		DialContext:         (&net.Dialer{Timeout: maxConnect}).DialContext,
		TLSHandshakeTimeout: maxConnect, IdleConnTimeout: idleConn, MaxIdleConnsPerHost: maxIdleConns,
	}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	members, err := access.Members()
	if err != nil {
		return nil, err
	}
	return &Client{
		http: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		scrub: scrubber(access.Secrets()), members: members,
		first: or(env.FirstTimeout, defaultFirst), idle: or(env.IdleTimeout, defaultIdle),
	}, nil
}

// Encode returns a request as JSON with the members of the access, except for some.
func (c *Client) Encode(request any, except ...string) ([]byte, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, fault.New(fault.Internal).Wrap(fmt.Errorf("encode the request: %w", err))
	}
	if len(c.members) == 0 {
		return raw, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fault.New(fault.Internal).Wrap(fmt.Errorf("encode the request: %w", err))
	}
	for name, value := range c.members {
		if !slices.Contains(except, name) {
			all[name] = value
		}
	}
	if raw, err = json.Marshal(all); err != nil {
		return nil, fault.New(fault.Internal).Wrap(fmt.Errorf("encode the request: %w", err))
	}
	return raw, nil
}

// Close releases idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do makes one attempt and returns its sink with the whole answer. Its errors are those that model.Model promises.
func (c *Client) Do(ctx context.Context, to model.Listener, attempt func(context.Context, *Sink) error) (*Sink, error) {
	s := &Sink{to: to}
	err := attempt(ctx, s)
	if err == nil {
		err = s.end()
	}
	switch {
	case err == nil:
		return s, nil
	case s.err != nil:
		return nil, s.err
	case ctx.Err() != nil:
		return nil, model.Ended(ctx)
	}
	return nil, c.classify(err)
}

// Failure returns the failure for an error of an answer that was read to its end.
func (c *Client) Failure(err error) error { return c.classify(err) }

// Answer completes a reply with the text and the reasoning. A reply that says nothing is a failure.
func (c *Client) Answer(s *Sink, r model.Reply) (model.Reply, error) {
	r.Text, r.Reasoning = s.text.String(), s.reasoning.String()
	if strings.TrimSpace(r.Text) == "" && len(r.ToolCalls) == 0 {
		e := &emptyError{stop: r.StopReason, reasoning: len(r.Reasoning)}
		return model.Reply{}, e.failure(c)
	}
	return r, nil
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
	if _, ok := errors.AsType[*malformedError](err); ok {
		f := c.failure(fault.ModelBadReply, err)
		f.Retry = true
		return f
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
