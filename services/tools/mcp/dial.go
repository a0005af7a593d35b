package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

const (
	// connectTimeout bounds start and handshake of a server. A program that a package manager fetches on first use takes
	// longest.
	connectTimeout = 30 * time.Second
	// httpConnectTimeout is shorter: an HTTP server runs already or does not answer.
	httpConnectTimeout = 10 * time.Second
	// httpBodyLimit bounds the body of one HTTP response, an event stream included: as much as a program may send unasked.
	httpBodyLimit = floodBurst
	// idleConn is the time for which an HTTP connection waits for the next call.
	idleConn = 90 * time.Second
	// clientVersion is the version of this MCP client.
	clientVersion = "1.0.0"
	// legacyProtocol is the version for a server that did not understand the newest handshake.
	legacyProtocol = "2025-11-25"
)

// Dialer opens one connection to a server. The connection calls changed, which must not block, when the server reports
// changed tools.
type Dialer func(ctx context.Context, legacy bool, changed func()) (*session, error)

// handshake opens the protocol over a transport.
func handshake(ctx context.Context, t mcp.Transport, legacy bool, changed func()) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "waggle", Version: clientVersion}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{}, // The client offers nothing to a server: no roots, no sampling.
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed() },
	})
	opts := &mcp.ClientSessionOptions{}
	if legacy {
		opts.ProtocolVersion = legacyProtocol
	}
	return c.Connect(ctx, t, opts)
}

// Dial returns the dialer of a program or an endpoint.
func Dial(cfg Config, log zerolog.Logger) Dialer {
	if len(cfg.Command) > 0 {
		return dialProgram(&cfg, log.With().Str("server", cfg.Name).Logger())
	}
	return dialHTTP(&cfg)
}

// dialProgram starts a program and opens the protocol over its standard input and output.
func dialProgram(cfg *Config, log zerolog.Logger) Dialer {
	var once sync.Once
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		say := func(what string) func([]byte) {
			return func(line []byte) {
				log.Debug().Str("line", bound.Shorten(strings.TrimRight(string(line), "\r\n"), stderrLine)).Msg(what)
			}
		}
		p, err := startProcess(cfg, say("log stderr of tool server"))
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
		}
		once.Do(func() { describe(p.launch, log) })
		g := newGuard(p.stdout, time.Now, say("drop line that is not a message"))
		// The guard bounds a line, this limit a message that is spread over lines.
		io := &mcp.IOTransport{Reader: g, Writer: p.stdin, MaxLineLength: maxLine + guardBlock}
		// The end of the program releases a connection that hangs in the handshake.
		stop := context.AfterFunc(ctx, func() { p.stop(true) })
		cs, err := handshake(ctx, tapped{io}, legacy, changed)
		if !stop() || err != nil {
			p.stop(true)
			_ = p.stdout.Close()
			return nil, errors.Join(err, context.Cause(ctx), p.ending())
		}
		s := newSession(cs)
		s.proc, s.guard, s.seen, s.keep = p, g, true, cfg.KeepOnCancel
		return s, nil
	}
}

// describe logs the sandbox of a program, and what a hostile one could do for lack of a layer.
func describe(l *sandbox.Launch, log zerolog.Logger) {
	for _, g := range l.Gaps {
		log.Warn().Str("missing", g.Missing).Str("allows", g.Allows).Msg("start tool server in sandbox with gap")
	}
	log.Debug().Stringer("sandbox", l.Features).Msg("start tool server")
}

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
			return nil, err
		}
		s := newSession(cs)
		s.end = base.CloseIdleConnections
		return s, nil
	}
}

// InProcess opens the protocol with a server within this process, which each connection asks for.
func InProcess(server func() *mcp.Server) Dialer {
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		near, far := mcp.NewInMemoryTransports()
		ss, err := server().Connect(ctx, far, nil)
		if err != nil {
			return nil, err
		}
		cs, err := handshake(ctx, tapped{near}, legacy, changed)
		if err != nil {
			return nil, errors.Join(err, ss.Close())
		}
		s := newSession(cs)
		s.seen = true
		s.end = func() { _ = ss.Close() }
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

// gate is the HTTP side of a server: it adds the headers, bounds the bodies and records the fate of a call's request.
type gate struct {
	base    http.RoundTripper
	headers map[string]string
	user    *url.Userinfo // the configured address' user; nil without one
	query   string
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
	res.Body = &boundedBody{ReadCloser: res.Body, left: httpBodyLimit}
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

// boundedBody fails once the reader has exceeded the limit of a response.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errFlood
	}
	return n, err
}
