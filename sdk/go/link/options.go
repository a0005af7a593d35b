package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

const (
	// dialTimeout covers a slow TLS handshake over a bad line, and a gateway that waits
	// for the services behind it.
	dialTimeout = 20 * time.Second
	// writeTimeout ends a connection whose other side has stopped reading.
	writeTimeout = 10 * time.Second
	// outgoing is how many frames wait for a slow connection; more wait with their senders.
	outgoing = 64
	// maxRetryAfter bounds the pause that a server can ask for.
	maxRetryAfter = 5 * time.Minute
)

// Defaults of Options.
const (
	// DefaultMinBackoff and DefaultMaxBackoff let an agent make several attempts within
	// the 15 s for which the server keeps its place, and keep a person from waiting long
	// once the server is back.
	DefaultMinBackoff = 100 * time.Millisecond
	DefaultMaxBackoff = 5 * time.Second
	// DefaultPing and DefaultPong notice a dead line within about half a minute, which
	// is before the server does (45 s).
	DefaultPing = 20 * time.Second
	DefaultPong = 10 * time.Second
	// DefaultPending is far more than a client requests at a time.
	DefaultPending = 1024
)

// Socket is one WebSocket. A *websocket.Conn is one.
type Socket interface {
	Read(ctx context.Context) (websocket.MessageType, []byte, error)
	Write(ctx context.Context, kind websocket.MessageType, frame []byte) error
	// Ping waits for the pong, which a concurrent Read receives.
	Ping(ctx context.Context) error
	Close(code websocket.StatusCode, reason string) error
	CloseNow() error
}

// Options say where and how a link connects.
type Options struct {
	// URL is the address, ws:// or wss://, possibly with a query.
	URL string
	// Next, if set, returns the address of each further connection in URL's place: several
	// gateways serve the same logs.
	Next func() string
	// Header is sent with the handshake; may be nil.
	Header http.Header
	// Token, if set, returns the bearer token for each connection, empty for none. A link with an
	// expired token reconnects with a new one.
	Token func(ctx context.Context) (string, error)
	// HTTPClient makes the connections, if set: proxies, TLS.
	HTTPClient *http.Client
	// Dial, if set, makes the connections in HTTPClient's place. An HTTP answer instead of a
	// WebSocket is a *RefusedError.
	Dial func(ctx context.Context, address string, header http.Header) (Socket, error)

	// MinBackoff and MaxBackoff bound the pause before a connection is made again. It
	// doubles with each failure and has up to half of itself taken off by chance.
	MinBackoff, MaxBackoff time.Duration
	// GiveUp ends a link whose server stays away for longer; 0 = never.
	GiveUp time.Duration
	// Hasty ends the link if the first attempt fails, for example because no server listens there.
	Hasty bool
	// Ping is the pause between pings, and Pong how long the other side has for a pong.
	Ping, Pong time.Duration
	// Pending bounds the sends that the server has not settled.
	Pending int

	// OnUp is called for each ready connection, and OnDown at its end, alternately, from one
	// goroutine at a time. They must not block. The error is nil if this side ended the connection.
	OnUp   func()
	OnDown func(err error)
}

// Header returns the header of a client's requests, with the bearer token unless it is empty.
func Header(token string) http.Header {
	header := http.Header{"User-Agent": {"waggle-sdk-go"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header
}

func (o Options) withDefaults() Options {
	for value, standard := range map[*time.Duration]time.Duration{&o.MinBackoff: DefaultMinBackoff, &o.Ping: DefaultPing, &o.Pong: DefaultPong} {
		if *value <= 0 {
			*value = standard
		}
	}
	if o.MaxBackoff < o.MinBackoff {
		o.MaxBackoff = max(DefaultMaxBackoff, o.MinBackoff)
	}
	if o.Pending <= 0 {
		o.Pending = DefaultPending
	}
	if o.Next == nil {
		address := o.URL
		o.Next = func() string { return address }
	}
	if o.Dial == nil {
		o.Dial = o.websocket
	}
	if o.OnUp == nil {
		o.OnUp = func() {}
	}
	if o.OnDown == nil {
		o.OnDown = func(error) {}
	}
	return o
}

// dial makes a connection, with parameters added to the address.
func (o Options) dial(ctx context.Context, address string, query url.Values) (Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	u, err := Address(address)
	if err != nil {
		return nil, Final(err)
	}
	q := u.Query()
	for name, values := range query {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	header := o.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if o.Token != nil {
		token, err := o.Token(ctx)
		if err != nil {
			return nil, &DialError{Err: fmt.Errorf("get a token: %w", err)}
		}
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
	}
	s, err := o.Dial(ctx, u.String(), header)
	if _, refused := errors.AsType[*RefusedError](err); err == nil || refused {
		return s, err
	}
	return nil, &DialError{Address: place(u), Err: bare(err)}
}

// stays follows no redirect: the credentials are for the server that the options name.
var stays = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Client returns the client for requests with credentials: that of the options, or one that follows no redirects.
func (o Options) Client() *http.Client {
	if o.HTTPClient != nil {
		return o.HTTPClient
	}
	return stays
}

// websocket is the usual Dial.
func (o Options) websocket(ctx context.Context, address string, header http.Header) (Socket, error) {
	conn, resp, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPHeader: header, HTTPClient: o.Client()}) //nolint:bodyclose // Dial closes it
	switch {
	case err == nil:
		conn.SetReadLimit(maxFrame)
		return conn, nil
	case resp != nil && resp.StatusCode >= 300:
		return nil, &RefusedError{Status: resp.StatusCode, RetryAfter: RetryAfter(resp.Header), Err: bare(err)}
	}
	return nil, err
}

// Address parses a ws:// or wss:// URL.
func Address(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, fmt.Errorf("%q is not a ws:// or wss:// URL", raw)
	}
	return u, nil
}

// bare returns err without the URL that errors of HTTP quote: its query may be a secret.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// place is the address without its query, for people.
func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// RetryAfter reads the pause that a server requests, in seconds or as a date; 0 = none. It is at most 5 minutes.
func RetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	d := time.Duration(0)
	if seconds, err := strconv.Atoi(v); err == nil && seconds < int(maxRetryAfter/time.Second) {
		d = time.Duration(seconds) * time.Second
	} else if err == nil {
		d = maxRetryAfter
	} else if at, err := http.ParseTime(v); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxRetryAfter)
}

// Pauses are those between the attempts of one chain. Each is up to half shorter by chance, so that clients do not return all at once.
type Pauses struct{ least, most, next time.Duration }

// NewPauses returns pauses that begin with the least one and double with each failure.
func NewPauses(least, most time.Duration) Pauses {
	return Pauses{least: least, most: most, next: least}
}

// Reset returns to the shortest pause.
func (p *Pauses) Reset() { p.next = p.least }

// Next returns how long to wait now: after the pause that the server requests, if any. Goodbye says that the server has sent the client
// to another gateway.
func (p *Pauses) Next(retryAfter time.Duration, goodbye bool) time.Duration {
	first := p.next == p.least
	d := p.next - rand.N(p.next/2+1) //nolint:gosec // jitter is no secret
	p.next = min(2*p.next, p.most)
	if goodbye && first { // another gateway takes over
		return rand.N(p.least) //nolint:gosec // jitter is no secret
	}
	return retryAfter + d
}

// after returns how long to wait after a connection has ended with err.
func (p *Pauses) after(err error) time.Duration {
	r, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return p.Next(0, goodbye(err))
	}
	return p.Next(r.RetryAfter, goodbye(err))
}
