package waggle

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

const (
	// maxAnswer bounds an answer of the API: the largest state, with room.
	maxAnswer = 64 << 20
	// maxWait is for one attempt at a request: a list of many sessions takes seconds, and gateways answer a waiting call after 20.
	maxWait = 45 * time.Second
)

// request is one to the HTTP API.
type request struct {
	method string
	path   []string // below /api/v1; each part may be any text
	query  url.Values
	body   []byte
	accept string
}

// Call makes one request to the HTTP API and returns the answer, which may be empty. The
// parts of the path below /api/v1 may be any text. An answer that reports an error is an
// *Error; a server that cannot be reached is a *link.DialError.
func (c *Client) Call(ctx context.Context, method string, body []byte, parts ...string) (json.RawMessage, error) {
	return c.attempt(ctx, request{method: method, body: body, path: parts})
}

// Get makes a GET request with a query, and repeats it while the server is away.
func (c *Client) Get(ctx context.Context, query url.Values, parts ...string) (json.RawMessage, error) {
	return c.persist(ctx, request{method: http.MethodGet, query: query, path: parts})
}

// call makes a request that may be repeated, with an answer of a type. body may be nil.
func call[T any](ctx context.Context, c *Client, method string, body any, parts ...string) (T, error) {
	var answer T
	q := request{method: method, path: parts}
	if body != nil {
		var err error
		if q.body, err = json.Marshal(body); err != nil {
			return answer, err
		}
	}
	raw, err := c.persist(ctx, q)
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &answer)
	}
	return answer, err
}

// persist makes a request at one gateway after the other until the server answers it, or ctx ends.
func (c *Client) persist(ctx context.Context, q request) (json.RawMessage, error) {
	return persist(ctx, c, func() (json.RawMessage, error) { return c.attempt(ctx, q) })
}

func persist[T any](ctx context.Context, c *Client, attempt func() (T, error)) (T, error) {
	pauses := link.NewPauses(c.opt.MinBackoff, c.opt.MaxBackoff)
	for {
		answer, err := attempt()
		switch {
		case err == nil || ctx.Err() != nil:
			return answer, late(ctx, err)
		case c.opt.Hasty || !isAway(err):
			return answer, err
		}
		c.turn()
		if !c.rest(ctx, pauses.Next(pauseOf(err), false)) {
			return answer, late(ctx, err)
		}
	}
}

// attempt makes one request and reads its answer. An answer that is not JSON does not come from a gateway.
func (c *Client) attempt(ctx context.Context, q request) (json.RawMessage, error) {
	raw, header, err := c.read(ctx, q)
	if err == nil && len(raw) > 0 && !json.Valid(raw) {
		return nil, c.unreachable(fmt.Errorf("the answer is not JSON, but %q", header.Get("Content-Type")))
	}
	return raw, err
}

// read makes one request and returns the body of its answer.
func (c *Client) read(ctx context.Context, q request) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	resp, err := c.open(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, nil, c.unreachable(err)
	case len(answer) > maxAnswer:
		return nil, nil, fmt.Errorf("waggle: the answer has more than %d MiB", maxAnswer>>20)
	}
	return answer, resp.Header, nil
}

// open makes one request, with new credentials if the server no longer takes the present ones, and returns its answer before the body is
// read. An answer that reports an error is an *Error.
func (c *Client) open(ctx context.Context, q request) (*http.Response, error) {
	resp, err := c.do(ctx, q)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && c.opt.TokenSource != nil {
		_ = resp.Body.Close()
		resp, err = c.do(ctx, q)
	}
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode >= 200 && resp.StatusCode <= 299:
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		body = nil // the status says enough
	}
	return nil, problem(resp, body)
}

func (c *Client) do(ctx context.Context, q request) (*http.Response, error) {
	u := c.base().String() + "/api/v1"
	for _, p := range q.path {
		u += "/" + url.PathEscape(p)
	}
	if len(q.query) > 0 {
		u += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, u, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if len(q.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.accept != "" {
		req.Header.Set("Accept", q.accept)
	}
	if err := c.authorize(ctx, req.Header); err != nil {
		return nil, err
	}
	resp, err := link.Options{HTTPClient: c.opt.HTTPClient}.Client().Do(req)
	if err != nil {
		return nil, c.unreachable(bare(err))
	}
	return resp, nil
}

func (c *Client) authorize(ctx context.Context, h http.Header) error {
	token := c.opt.Token
	if c.opt.TokenSource != nil {
		t, err := c.opt.TokenSource(ctx)
		if err != nil {
			return &link.DialError{Err: fmt.Errorf("get a token: %w", err)}
		}
		token = t
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// base returns the address of the gateway that is in use.
func (c *Client) base() *url.URL {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.http
}

// turn turns to the next gateway, if the program knows several.
func (c *Client) turn() {
	if c.opt.Next == nil {
		return
	}
	_, next, err := parse(c.opt.Next())
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.http = next
}

func (c *Client) unreachable(err error) error {
	return &link.DialError{Address: c.base().Redacted(), Err: err}
}

// isAway reports whether the server is away or busy, and has not refused the request for what it is.
func isAway(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Code {
		case string(fault.RateLimited), string(fault.TooManySockets), codeOf(http.StatusTooManyRequests):
			return true
		case string(fault.InputExpired):
			return false
		}
		return e.Status >= 500 || e.Status == http.StatusRequestTimeout
	}
	_, unreachable := errors.AsType[*link.DialError](err)
	return unreachable
}

// pauseOf returns the pause that the server requests with an error.
func pauseOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// late returns err, and if ctx has ended its error with err as the last failure.
func late(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(err, ctx.Err()):
		return ctx.Err()
	}
	return fmt.Errorf("waggle: %w; the last failure: %w", ctx.Err(), err)
}

// pause waits, and reports whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// bare returns err without the URL that errors of HTTP quote.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// newID returns a random id.
func newID() string { return strings.ToLower(rand.Text()) }
