// Package upstream holds the common parts of all HTTP model providers: it maps failures to faults, limits the wait
// for a silent provider, and keeps keys out of errors and logs.
package upstream

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
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

func or(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// minKey is the shortest key that text removes: shorter keys would blot out words.
const minKey = 6

// keyLike matches the forms of providers' keys, whole or masked, and the text after "Bearer".
var keyLike = regexp.MustCompile(`\b(?:(?:sk|gsk|xai|hf|pplx|key)[-_]|AIza)[A-Za-z0-9_*.-]{6,}|(?i:\bbearer\s+)[A-Za-z0-9_*.~+/=-]{6,}`)

func scrubber(secrets []string) func(string) string {
	return func(s string) string {
		for _, secret := range secrets {
			if len(secret) >= minKey {
				s = strings.ReplaceAll(s, secret, "[key]")
			}
		}
		return keyLike.ReplaceAllString(s, "[key]")
	}
}
