package waggle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

const (
	// maxAnswer bounds an answer of the API: the largest state, with room.
	maxAnswer = 64 << 20
	// maxWait is for a whole request: a list of many sessions takes seconds.
	maxWait = 30 * time.Second
)

// Options hold the credentials and transport of a program. The zero value connects without
// credentials.
type Options struct {
	// Token is an API key or a JWT. TokenSource, if set, returns a new one before each
	// request and connection, for tokens that expire; it may be called from any goroutine.
	Token       string
	TokenSource func(ctx context.Context) (string, error)
	// HTTPClient makes the requests and connections, if set: proxies, TLS. It should have no
	// timeout of its own, which would end connections.
	HTTPClient *http.Client
	// ClientID names the device, which has a position of its own in each session; empty = a new one.
	ClientID string
	// Language is that of texts for people, zh_CN or en_US; empty = the server's choice.
	Language string
	// Next, if set, returns the address of a gateway for each further connection: several
	// gateways serve the same sessions.
	Next func() string
}

// Client is a gateway as a program sees it. It is safe for concurrent use.
type Client struct {
	ctx  context.Context //nolint:containedctx // the life of the client's sessions and teams
	opt  Options
	ws   *url.URL // of the gateway, with the path that all others are below
	http *url.URL
}

// Open returns a client of the gateway at a ws://, wss://, http:// or https:// URL, and ignores a
// dialect's path at its end. It makes no connection yet. ctx bounds everything that the client
// opens.
func Open(ctx context.Context, address string, opt Options) (*Client, error) {
	c := &Client{ctx: ctx, opt: opt}
	var err error
	c.ws, c.http, err = parse(address)
	return c, err
}

// parse returns the address for WebSockets and that for requests.
func parse(address string) (ws, web *url.URL, err error) {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" {
		path := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/session"), "/ws")
		for _, schemes := range [][2]string{{"ws", "http"}, {"wss", "https"}} {
			if u.Scheme == schemes[0] || u.Scheme == schemes[1] {
				return &url.URL{Scheme: schemes[0], Host: u.Host, Path: path}, &url.URL{Scheme: schemes[1], Host: u.Host, Path: path}, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("%q is not a ws:// or wss:// URL", address)
}

// socket returns the address of a WebSocket below the gateway's.
func (c *Client) socket(path string) string { return c.ws.String() + path }

// next returns a function for the addresses of further connections; nil with one gateway.
func (c *Client) next(path string) func() string {
	if c.opt.Next == nil {
		return nil
	}
	return func() string {
		ws, _, err := parse(c.opt.Next())
		if err != nil {
			return c.socket(path)
		}
		return ws.String() + path
	}
}

// Call makes a request to the HTTP API and returns the answer, which may be empty. The
// parts of the path below /api/v1 may be any text. An answer that reports an error is an
// *Error; a server that cannot be reached is a *link.DialError.
func (c *Client) Call(ctx context.Context, method string, body []byte, parts ...string) (json.RawMessage, error) {
	return c.request(ctx, method, body, nil, parts...)
}

// Get is Call for a GET request with a query.
func (c *Client) Get(ctx context.Context, query url.Values, parts ...string) (json.RawMessage, error) {
	return c.request(ctx, http.MethodGet, nil, query, parts...)
}

func (c *Client) request(ctx context.Context, method string, body []byte, query url.Values, parts ...string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	path := c.http.String() + "/api/v1"
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if err := c.authorize(ctx, req.Header); err != nil {
		return nil, err
	}
	resp, err := link.Options{HTTPClient: c.opt.HTTPClient}.Client().Do(req)
	if err != nil {
		return nil, &link.DialError{Address: c.http.Redacted(), Err: bare(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("waggle: the answer has more than %d MiB", maxAnswer>>20)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, problem(resp, answer)
	}
	return answer, nil
}

func (c *Client) authorize(ctx context.Context, h http.Header) error {
	token := c.opt.Token
	if c.opt.TokenSource != nil {
		t, err := c.opt.TokenSource(ctx)
		if err != nil {
			return fmt.Errorf("waggle: get a token: %w", err)
		}
		token = t
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// bare returns err without the URL that errors of HTTP quote.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// call is Call with an answer of a type. body may be nil.
func call[T any](ctx context.Context, c *Client, method string, body any, parts ...string) (T, error) {
	var answer T
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return answer, err
		}
	}
	raw, err := c.Call(ctx, method, b, parts...)
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &answer)
	}
	return answer, err
}

// SessionOptions say which session is meant. The zero value is a new one.
type SessionOptions struct {
	ID    string // session to continue; empty = a new one
	After uint64 // position to continue after; 0 = a plan's beginning, or from now on in a chat

	// ConfirmPlan asks before a plan is carried out; nil = the server's choice.
	ConfirmPlan *bool
	// OnBusy says how to handle a message during an active run: reject, enqueue or interrupt.
	OnBusy string
}

// myagent returns the options of the dialect of sessions that plan.
func (c *Client) myagent(o SessionOptions) myagent.Options {
	const path = "/ws/session"
	return myagent.Options{
		URL: c.socket(path), Next: c.next(path), Session: o.ID, After: o.After, Token: c.opt.Token, TokenSource: c.opt.TokenSource,
		HTTPClient: c.opt.HTTPClient, ClientID: c.opt.ClientID, Language: c.opt.Language, ConfirmPlan: o.ConfirmPlan, OnBusy: o.OnBusy,
	}
}
