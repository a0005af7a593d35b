package waggle

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
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
	// Next, if set, returns the address of a gateway for each further connection, and after each failed request: several
	// gateways serve the same sessions.
	Next func() string
	// Hasty ends requests and streams of the HTTP API with their first failure. By default a request that may be repeated is
	// repeated while the server is away, until its context ends, and a stream resumes.
	Hasty bool
	// MinBackoff and MaxBackoff bound the pauses between these attempts; 0 = those of package link.
	MinBackoff, MaxBackoff time.Duration
}

// Client is a gateway as a program sees it. It is safe for concurrent use.
type Client struct {
	ctx  context.Context //nolint:containedctx // the life of the client's sessions and teams
	opt  Options
	ws   *url.URL                                  // of the gateway, with the path that all others are below
	rest func(context.Context, time.Duration) bool // waits, and reports whether it waited to the end

	mu   sync.Mutex
	http *url.URL // of the gateway that requests go to now
}

// Open returns a client of the gateway at a ws://, wss://, http:// or https:// URL, and ignores a
// dialect's path at its end. It makes no connection yet. ctx bounds everything that the client
// opens.
func Open(ctx context.Context, address string, opt Options) (*Client, error) {
	if opt.MinBackoff <= 0 {
		opt.MinBackoff = link.DefaultMinBackoff
	}
	if opt.MaxBackoff < opt.MinBackoff {
		opt.MaxBackoff = max(link.DefaultMaxBackoff, opt.MinBackoff)
	}
	c := &Client{ctx: ctx, opt: opt, rest: pause}
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
