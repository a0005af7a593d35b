// Package upstream holds what every model provider behind HTTP has in common:
// when a failed call is tried again, how failures become faults, how long a
// silent provider is waited for, and that no key gets into an error or a log.
package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/services/agent/model"
)

const (
	// defaultBudget is the window of the providers' per-minute rate limits: after
	// it a limit that was hit has passed, or it is not going to.
	defaultBudget = time.Minute
	// defaultPause and maxPause are what both vendors' own clients use: 0.5 s, doubled up to 8 s.
	defaultPause = 500 * time.Millisecond
	maxPause     = 8 * time.Second
	// maxTries bounds the load that one call puts on a provider which fails at once
	// and asks for no pause: 0.5+1+2+4+8+8+8 s fill half of the default budget.
	maxTries = 8
	// defaultFirst lets a CPU-bound local server read a prompt of 8,000 tokens at 30 a second.
	defaultFirst = 5 * time.Minute
	// defaultIdle is far above a token a second, the slowest model that anybody
	// waits for, and leaves room for models that think without a word.
	defaultIdle = 2 * time.Minute
	// maxIdleConns keeps a connection for each call of a busy worker; the default of two would dial anew.
	maxIdleConns = 32
	// maxConnect leaves room for two lost packets, and leaves the budget to other tries.
	maxConnect = 10 * time.Second
	// idleConn is below the minute and more after which providers' load balancers drop a connection.
	idleConn = 50 * time.Second
)

// Client makes the calls of one model. It may be used from any number of goroutines.
type Client struct {
	HTTP *http.Client // follows no redirects: they would carry the key elsewhere

	name                       string
	scrub                      func(string) string
	budget, pause, first, idle time.Duration
	log                        zerolog.Logger
}

// New returns the client of the model called name. The key is the one to be kept
// out of errors and logs.
func New(name, key string, env model.Env) *Client {
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
		name: name, scrub: scrubber(key), log: env.Logger,
		budget: or(env.RetryBudget, defaultBudget), pause: or(env.RetryPause, defaultPause),
		first: or(env.FirstTimeout, defaultFirst), idle: or(env.IdleTimeout, defaultIdle),
	}
}

// Close releases idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Do runs attempt until it succeeds, fails for good, has put text into its sink,
// or the budget is spent, and returns the text. The error is as model.Model promises.
func (c *Client) Do(ctx context.Context, onText func(string) error, attempt func(context.Context, *Sink) error) (string, error) {
	s := &Sink{onText: onText}
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: c.pause, MaxInterval: max(maxPause, c.pause),
		Multiplier: 2, RandomizationFactor: 0.5,
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, c.verdict(ctx, s, attempt(ctx, s))
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(c.budget), backoff.WithMaxTries(maxTries),
		backoff.WithNotify(func(err error, pause time.Duration) {
			c.log.Warn().Err(c.classify(err)).Str("model", c.name).Dur("pause", pause).Msg("the model's service failed; trying again")
		}))
	switch {
	case err == nil:
		return s.text.String(), nil
	case s.err != nil:
		return "", s.err
	case ctx.Err() != nil:
		return "", model.Ended(ctx)
	}
	return "", c.classify(err).fault
}

// verdict says what the outcome of an attempt means for the retries.
func (c *Client) verdict(ctx context.Context, s *Sink, err error) error {
	if err == nil {
		return nil
	}
	f := c.classify(err)
	switch {
	case s.err != nil, s.started, ctx.Err() != nil, !f.retry:
		return backoff.Permanent(f)
	case f.after > 0:
		return errors.Join(f, &backoff.RetryAfterError{Duration: f.after})
	}
	return f
}

func or(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}
