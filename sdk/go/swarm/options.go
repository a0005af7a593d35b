package swarm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxFrame bounds a frame of the server: the result of a task is one, and those
	// are far smaller.
	maxFrame = 8 << 20
	// dialTimeout covers a slow TLS handshake over a bad line, and a gateway that waits
	// for the services behind it.
	dialTimeout = 20 * time.Second
	// greetTimeout covers the longest that a gateway takes to list a peer.
	greetTimeout = 20 * time.Second
	// writeTimeout ends a connection whose other side has stopped reading.
	writeTimeout = 10 * time.Second
	// pingInterval and pingTimeout notice a dead line within about half a minute, which
	// is before the server does (45 s).
	pingInterval = 20 * time.Second
	pingTimeout  = 10 * time.Second
	// outgoing is how many frames wait for a connection that is slow; more wait with
	// their callers.
	outgoing = 64
)

// Defaults of Options.
const (
	// DefaultURL is where `waggle up` listens.
	DefaultURL = "ws://127.0.0.1:9000"
	// DefaultMinBackoff and DefaultMaxBackoff let an agent make several attempts within
	// the 15 s for which the server keeps its place.
	DefaultMinBackoff = 100 * time.Millisecond
	DefaultMaxBackoff = 5 * time.Second
	// DefaultBuffer is far more events than one task has at a time.
	DefaultBuffer = 1024
)

// Options are what all roles have in common. The zero value connects to DefaultURL
// without credentials.
type Options struct {
	// URL is ws:// or wss:// and a host; the path of the role is added unless there is one.
	URL string
	// Token is an API key or a JWT. TokenSource, if set, is asked for one before each
	// connection, for tokens that expire; it may be called from any goroutine.
	Token       string
	TokenSource func(ctx context.Context) (string, error)
	// HTTPClient makes the connections, if set: proxies, TLS, headers.
	HTTPClient *http.Client
	// MinBackoff and MaxBackoff bound the pause before a connection is made again.
	// It doubles with each failure and has up to half of itself taken off by chance.
	MinBackoff, MaxBackoff time.Duration
	// OnConnect is told of each connection that the server has greeted and OnDisconnect
	// of its end, by turns, on the goroutine that makes connections: they must not block. An end
	// that this side wanted has no error.
	OnConnect    func()
	OnDisconnect func(err error)
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
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return o, fmt.Errorf("swarm: %q is not a ws:// or wss:// URL", o.URL)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	o.URL = u.String()
	return o, nil
}

// dial makes a connection, with parameters added to the URL.
func (o Options) dial(ctx context.Context, query url.Values) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	for name, values := range query {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	header, err := o.header(ctx)
	if err != nil {
		return nil, err
	}
	conn, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPHeader: header, HTTPClient: o.HTTPClient}) //nolint:bodyclose // Dial closes it
	if err != nil && resp != nil && resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
		return nil, &refusal{status: resp.StatusCode}
	}
	if err != nil {
		return nil, fmt.Errorf("swarm: connect to %s: %w", o.place(), bare(err))
	}
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

// bare returns err without the URL that errors of HTTP quote: its query is a secret.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// place is the URL without its query, for people.
func (o Options) place() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "the server"
	}
	u.RawQuery = ""
	return u.Redacted()
}

func (o Options) header(ctx context.Context) (http.Header, error) {
	h := http.Header{"User-Agent": {"waggle-sdk-go"}}
	token := o.Token
	if o.TokenSource != nil {
		t, err := o.TokenSource(ctx)
		if err != nil {
			return nil, fmt.Errorf("swarm: get a token: %w", err)
		}
		token = t
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h, nil
}

// newID returns an id that nobody else has.
func newID() string { return strings.ToLower(rand.Text()) }
