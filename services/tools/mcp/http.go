package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// dialHTTP opens the protocol at a streamable HTTP endpoint.
func dialHTTP(cfg *Config) Dialer {
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		ctx, cancel := context.WithTimeout(ctx, httpConnectTimeout)
		defer cancel()
		u, err := url.Parse(cfg.URL)
		if err != nil {
			return nil, err
		}
		base := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: idleConn}
		g := &gate{base: base, headers: cfg.Headers, user: u.User, query: u.RawQuery}
		// The gate adds the secret parts of the address: the address that the client knows appears in errors and logs.
		u.User, u.RawQuery = nil, ""
		client := &http.Client{Transport: g, CheckRedirect: sameHost}
		t := &mcp.StreamableClientTransport{Endpoint: u.String(), HTTPClient: client, MaxEventSize: maxLine}
		cs, err := handshake(ctx, t, legacy, changed)
		if err != nil {
			base.CloseIdleConnections()
			return nil, g.explain(err)
		}
		s := newSession(cs)
		s.end = base.CloseIdleConnections
		return s, nil
	}
}

// sameHost refuses redirects to other hosts, which would receive the headers.
func sameHost(req *http.Request, via []*http.Request) error {
	const most = 5 // similar to browsers; MCP needs no redirects
	if len(via) >= most || !sameOrigin(req.URL, via[0].URL) {
		return fmt.Errorf("redirect to %s refused", req.URL.Host)
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// gate is the HTTP side of a server: it adds the headers, mends and bounds the bodies and records the fate of a call's
// request.
type gate struct {
	base    http.RoundTripper
	headers map[string]string
	user    *url.Userinfo // the configured address' user; nil without one
	query   string
	refused atomic.Pointer[refusal] // the last refusal of a message
}

// RoundTrip sends one request.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.RawQuery = g.query
	if g.user != nil {
		password, _ := g.user.Password()
		req.SetBasicAuth(g.user.Username(), password)
	}
	for name, v := range g.headers {
		req.Header.Set(name, v)
	}
	a := attemptOf(req.Context()) //nolint:contextcheck // A request carries its context.
	if a == nil || req.Method != http.MethodPost {
		a = newAttempt() // A resumed stream belongs to an earlier, accepted request.
	}
	a.sent.Store(true)
	res, err := g.base.RoundTrip(req)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			a.refused.Store(true)
		}
		return nil, err
	}
	if turnedAway(res.StatusCode) {
		a.refused.Store(true)
	} else {
		a.accepted.Store(true)
	}
	if req.Method == http.MethodPost && res.StatusCode >= http.StatusBadRequest {
		g.refused.Store(&refusal{res.StatusCode, res.Header.Values("WWW-Authenticate"), req.Header.Get("Authorization") != ""})
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: httpBodyLimit}
	mendBody(res)
	return res, nil
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
	authorized bool     // the request had credentials
}

// explain returns the reason of a failed handshake in words that help the operator.
func (g *gate) explain(err error) error {
	r := g.refused.Load()
	if r == nil {
		return err
	}
	answer := fmt.Sprintf("it answers %d %s", r.status, http.StatusText(r.status))
	switch {
	case r.status == http.StatusUnauthorized && r.authorized:
		return fmt.Errorf("%s: it does not accept the Authorization that is sent%s; correct it in headers", answer, r.wants())
	case r.status == http.StatusUnauthorized:
		return fmt.Errorf("%s: it asks for credentials%s; set headers with the Authorization that it wants", answer, r.wants())
	case r.status == http.StatusForbidden:
		return fmt.Errorf("%s: the credentials have no right to it%s", answer, r.wants())
	case r.status == http.StatusNotFound:
		return fmt.Errorf("%s: look whether the path of url is that of its MCP endpoint", answer)
	}
	return fmt.Errorf("%s (%w)", answer, err)
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
