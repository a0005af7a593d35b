package swarm

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/sdk/go/link"
)

// greetTimeout covers the longest that a gateway takes to list a peer.
const greetTimeout = 20 * time.Second

// Defaults of Options.
const (
	// DefaultURL is where `waggle up` listens.
	DefaultURL = "ws://127.0.0.1:9000"
	// DefaultMinBackoff and DefaultMaxBackoff are those of every client.
	DefaultMinBackoff = link.DefaultMinBackoff
	DefaultMaxBackoff = link.DefaultMaxBackoff
	// DefaultBuffer is far more events than one task has at a time.
	DefaultBuffer = 1024
)

// Options are what all roles have in common. The zero value connects to DefaultURL
// without credentials.
type Options struct {
	// URL is ws://, wss://, http:// or https:// and a host. The path of the role is added if it has none.
	URL string
	// Token is an API key or a JWT. TokenSource, if set, returns a new one before each
	// connection, for tokens that expire; it may be called from any goroutine.
	Token       string
	TokenSource func(ctx context.Context) (string, error)
	// HTTPClient makes the connections, if set: proxies, TLS, headers.
	HTTPClient *http.Client
	// MinBackoff and MaxBackoff bound the pause before a connection is made again.
	// It doubles with each failure and has up to half of itself taken off by chance.
	MinBackoff, MaxBackoff time.Duration
	// OnConnect is called for each connection that the server has greeted, and OnDisconnect at its
	// end, alternately, on the goroutine that makes connections. They must not block. The error is
	// nil if this side ended the connection.
	OnConnect    func()
	OnDisconnect func(err error)

	hasty bool // a first attempt that fails is the last
}

func (o Options) withDefaults(path string) (Options, error) {
	if o.URL == "" {
		o.URL = DefaultURL
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = DefaultMinBackoff
	}
	if o.MaxBackoff < o.MinBackoff {
		o.MaxBackoff = max(DefaultMaxBackoff, o.MinBackoff)
	}
	if o.OnConnect == nil {
		o.OnConnect = func() {}
	}
	if o.OnDisconnect == nil {
		o.OnDisconnect = func(error) {}
	}
	u, err := link.Address(webSocket(o.URL))
	if err != nil {
		return o, fmt.Errorf("swarm: %w", err)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	o.URL = u.String()
	return o, nil
}

// link returns the options of the connections.
func (o Options) link() link.Options {
	return link.Options{
		URL: o.URL, Token: o.TokenSource, HTTPClient: o.HTTPClient, Header: link.Header(o.Token),
		MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff, Hasty: o.hasty,
		OnUp: o.OnConnect, OnDown: func(err error) { o.OnDisconnect(plain(err)) },
	}
}

// newID returns a unique id.
func newID() string { return strings.ToLower(rand.Text()) }

// webSocket returns an address of HTTP as that of the WebSocket: the address of a gateway is one for all packages.
func webSocket(address string) string {
	if rest, ok := strings.CutPrefix(address, "http"); ok {
		return "ws" + rest
	}
	return address
}
