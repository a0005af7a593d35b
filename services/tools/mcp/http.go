package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/oauth"
)

// Dial returns the dialer of a program or an endpoint.
func Dial(cfg Config, log zerolog.Logger) Dialer {
	log = log.With().Str("server", cfg.Name).Logger()
	switch {
	case cfg.PerTenant:
		return dialListing(&cfg, log)
	case len(cfg.Command) > 0:
		return dialProgram(&cfg, log)
	}
	return dialHTTP(&cfg, log)
}

// dialHTTP opens the protocol at an HTTP endpoint: a streamable one, or one of the older transport.
func dialHTTP(cfg *Config, log zerolog.Logger) Dialer {
	var tokens *oauth.Client // of all connections
	if address, _, err := addressOf(cfg); err == nil && cfg.OAuth != nil {
		tokens = oauth.New(*cfg.OAuth, address, log)
	}
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		ctx, cancel := context.WithTimeout(ctx, httpConnectTimeout)
		defer cancel()
		g, err := newGate(cfg, tokens)
		if err != nil {
			return nil, err
		}
		t := &mcp.StreamableClientTransport{Endpoint: g.address.String(), HTTPClient: g.client(), MaxEventSize: maxLine}
		cs, err := handshake(ctx, t, legacy, changed)
		if err != nil {
			g.base.CloseIdleConnections()
			if g.mayBeOld() {
				return dialOld(ctx, cfg, tokens, changed, g.explain(err))
			}
			return nil, g.explain(err)
		}
		s := newSession(cs)
		s.end = g.base.CloseIdleConnections
		return s, nil
	}
}

// mayBeOld reports whether the server's refusal is that of one that knows the older transport only.
func (g *gate) mayBeOld() bool {
	r := g.refused.Load()
	return r != nil && (r.status == http.StatusBadRequest || r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed)
}

// dialOld opens the protocol over the transport of 2024-11-05: one stream of events with all that the server sends. why is
// the reason why the newer one failed.
func dialOld(ctx context.Context, cfg *Config, tokens *oauth.Client, changed func(), why error) (*session, error) {
	g, err := newGate(cfg, tokens)
	if err != nil {
		return nil, err
	}
	g.stream = newBudget(time.Now)
	// The SDK ends the stream with the context in which it was opened.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	hangs := context.AfterFunc(ctx, end)
	t := &mcp.SSEClientTransport{Endpoint: g.address.String(), HTTPClient: g.client(), MaxEventSize: maxLine}
	cs, err := handshake(ctx, tapped{lasting{t, life}}, true, changed) // such a server may not even answer to newer handshakes
	if !hangs() || err != nil {
		end()
		if cs != nil { // it came up as the caller gave up
			_ = cs.Close()
		}
		g.base.CloseIdleConnections()
		if ctx.Err() != nil {
			err = errors.New("it sends no endpoint for messages, or no answer")
		}
		return nil, fmt.Errorf("%w; nor can it be used over the older transport, HTTP with SSE: %w", why, g.explain(err))
	}
	s := newSession(cs)
	s.seen, s.budget = true, g.stream
	s.end = func() {
		end()
		g.base.CloseIdleConnections()
	}
	return s, nil
}

// lasting is a transport whose connections last for a life of their own.
type lasting struct {
	mcp.Transport
	life context.Context //nolint:containedctx // of the one connection
}

// Connect opens the connection.
func (l lasting) Connect(context.Context) (mcp.Connection, error) { return l.Transport.Connect(l.life) } //nolint:contextcheck // see lasting

// sameHost refuses redirects to other hosts, which would receive the headers.
func sameHost(req *http.Request, via []*http.Request) error {
	const most = 5 // similar to browsers; MCP needs no redirects
	if len(via) >= most || !sameOrigin(req.URL, via[0].URL) {
		return fmt.Errorf("redirect to %s refused", req.URL.Host)
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

// portOf returns the port of an address.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// gate is the HTTP side of a server: it adds the headers, mends and bounds the bodies and records the fate of a call's
// request.
type gate struct {
	base    *http.Transport
	address *url.URL // without its secret parts
	headers map[string]string
	user    *url.Userinfo // the configured address' user; nil without one
	query   string
	tokens  *oauth.Client           // nil without OAuth
	stream  *budget                 // of the stream of the older transport; nil for the newer one
	refused atomic.Pointer[refusal] // the last refusal of a message
}

func newGate(cfg *Config, tokens *oauth.Client) (*gate, error) {
	address, secret, err := addressOf(cfg)
	if err != nil {
		return nil, err
	}
	return &gate{
		base:    &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: idleConn},
		address: address, headers: cfg.Headers, user: secret.User, query: secret.RawQuery, tokens: tokens,
	}, nil
}

// addressOf returns the configured address without and with its secret parts. The gate adds these: the address that the
// client knows appears in errors and logs.
func addressOf(cfg *Config) (address, secret *url.URL, _ error) {
	secret, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, nil, errors.New("its url is not an address") // the error would hold it
	}
	known := *secret
	known.User, known.RawQuery = nil, ""
	return &known, secret, nil
}

func (g *gate) client() *http.Client { return &http.Client{Transport: g, CheckRedirect: sameHost} }

// RoundTrip sends one request.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, g.address) {
		return nil, fmt.Errorf("it wants messages sent to another host, %s, which would receive the headers", req.URL.Host)
	}
	a := attemptOf(req.Context())
	if a == nil || req.Method != http.MethodPost {
		a = newAttempt() // A resumed stream belongs to an earlier, accepted request.
	}
	a.sent.Store(true)
	res, sent, err := g.send(req)
	if err != nil {
		// A server that was restarted has ended all connections: the next call must not be lost over another one of them.
		g.base.CloseIdleConnections()
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" || !sent {
			a.refused.Store(true)
		}
		return nil, err
	}
	if turnedAway(res.StatusCode) {
		a.refused.Store(true)
	} else {
		a.accepted.Store(true)
	}
	g.receive(req, res)
	return res, nil
}

// send sends a request, and once more with another token if the server refuses the first. It reports whether the server may
// act on it.
func (g *gate) send(req *http.Request) (_ *http.Response, sent bool, _ error) {
	if g.tokens == nil {
		res, err := g.base.RoundTrip(g.authorized(req, ""))
		return res, true, err
	}
	token, err := g.tokens.Token(req.Context())
	if err != nil {
		return nil, false, err
	}
	res, err := g.base.RoundTrip(g.authorized(req, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return res, true, err
	}
	other, err := g.tokens.Renew(req.Context(), token, res.Header.Values("WWW-Authenticate"))
	switch {
	case err != nil:
		_ = res.Body.Close()
		return nil, false, err
	case other == token:
		return res, true, nil
	}
	_ = res.Body.Close()
	req = g.authorized(req, other)
	if req.GetBody != nil {
		if req.Body, err = req.GetBody(); err != nil {
			return nil, false, err
		}
	}
	res, err = g.base.RoundTrip(req)
	return res, true, err
}

// authorized returns the request with the secret parts of the configuration.
func (g *gate) authorized(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	if req.URL.RawQuery == "" { // the older transport sends messages to an address that already has a query
		req.URL.RawQuery = g.query
	}
	if g.user != nil {
		password, _ := g.user.Password()
		req.SetBasicAuth(g.user.Username(), password)
	}
	for name, v := range g.headers {
		req.Header.Set(name, v)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// receive records a refusal, and mends and bounds the body of a response.
func (g *gate) receive(req *http.Request, res *http.Response) {
	if (req.Method == http.MethodPost || g.stream != nil) && res.StatusCode >= http.StatusBadRequest {
		g.refused.Store(&refusal{res.StatusCode, res.Header.Values("WWW-Authenticate")})
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); g.stream != nil && req.Method == http.MethodGet && kind == "text/event-stream" {
		res.Body = &mendedBody{body: &chargedBody{res.Body, g.stream}, next: nextOldEvent}
		return
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: httpBodyLimit}
	mendBody(res)
}

// turnedAway reports whether the status means that the server did not act on the request.
func turnedAway(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// refusal is an answer of a server that refuses a message.
type refusal struct {
	status     int
	challenges []string // of WWW-Authenticate
}

// explain returns the reason of a failed handshake in words that help the operator.
func (g *gate) explain(err error) error {
	if noToken, ok := errors.AsType[*oauth.Error](err); ok {
		return noToken
	}
	r := g.refused.Load()
	if r == nil || err == nil {
		return err
	}
	answer := fmt.Sprintf("it answers %d %s", r.status, http.StatusText(r.status))
	switch {
	case r.status == http.StatusUnauthorized && g.tokens != nil:
		return fmt.Errorf("%s: it rejects the token that oauth fetched%s; check oauth.scopes", answer, g.tokens.Clean(r.wants()))
	case r.status == http.StatusUnauthorized && g.configured():
		return fmt.Errorf("%s: it rejects the Authorization that is sent%s; correct it in headers", answer, r.wants())
	case r.status == http.StatusUnauthorized:
		return fmt.Errorf("%s: it requires credentials%s; set oauth, or headers with the Authorization that it expects", answer, r.wants())
	case r.status == http.StatusForbidden:
		return fmt.Errorf("%s: the credentials have no right to it%s", answer, r.wants())
	case r.status == http.StatusNotFound:
		return fmt.Errorf("%s: check that the path of url is that of its MCP endpoint", answer)
	}
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Errorf("%s: %s", answer, bound.Shorten(said.Message, bound.Title))
	}
	return errors.New(answer)
}

// configured reports whether the configuration has credentials for the server.
func (g *gate) configured() bool {
	header := http.Header{}
	for name, v := range g.headers {
		header.Set(name, v)
	}
	return g.user != nil || header.Get("Authorization") != ""
}

// wants says what a refusal asks for.
func (r *refusal) wants() string {
	all, err := oauthex.ParseWWWAuthenticate(r.challenges)
	if err != nil {
		return ""
	}
	for _, c := range all {
		if c.Scheme != "bearer" {
			continue
		}
		what := " by OAuth"
		if scope := c.Params["scope"]; scope != "" {
			what += fmt.Sprintf(" with scope %q", bound.Shorten(scope, bound.Title))
		}
		if why := c.Params["error_description"]; why != "" {
			what += ": " + bound.Shorten(strings.TrimSuffix(why, "."), bound.Title)
		}
		return what
	}
	return ""
}
