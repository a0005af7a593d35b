package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func address(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	require.NoError(t, err)
	return u
}

func TestCheck(t *testing.T) {
	good := Config{ClientID: "c", Secret: "s"}
	for _, c := range []struct {
		change func(*Config)
		server string
		want   string
	}{
		{func(*Config) {}, "https://x.example/mcp", ""},
		{func(*Config) {}, "http://127.0.0.1:1/mcp", ""},
		{func(*Config) {}, "http://[::1]/mcp", ""},
		{func(*Config) {}, "http://localhost/mcp", ""},
		{func(*Config) {}, "http://x.example/mcp", "url: must be https"},
		{func(*Config) {}, "http://10.0.0.1/mcp", "url: must be https"},
		{func(c *Config) { c.ClientID = "" }, "https://x.example", "oauth.client_id:"},
		{func(c *Config) { c.Secret = "" }, "https://x.example", "oauth.client_secret:"},
		{func(c *Config) { c.File = "f" }, "https://x.example", "oauth.client_secret:"},
		{func(c *Config) { c.Secret, c.File = "", "f" }, "https://x.example", ""},
		{func(c *Config) { c.TokenURL = "https://as.example/token" }, "https://x.example", ""},
		{func(c *Config) { c.TokenURL = "http://as.example/token" }, "https://x.example", "oauth.token_url:"},
		{func(c *Config) { c.TokenURL = "token" }, "https://x.example", "oauth.token_url:"},
	} {
		cfg := good
		c.change(&cfg)
		if err := cfg.Check(c.server); c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

// A server chooses no address that is not https, unless it is itself on this machine.
func TestAllowedAddresses(t *testing.T) {
	for _, c := range []struct {
		server, address string
		ok              bool
	}{
		{"https://x.example/mcp", "https://as.example/token", true},
		{"https://x.example/mcp", "http://as.example/token", false},
		{"https://x.example/mcp", "http://127.0.0.1/token", false},
		{"http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token", true},
		{"http://127.0.0.1:1/mcp", "http://localhost:2/token", true},
		{"http://127.0.0.1:1/mcp", "http://as.example/token", false},
		{"https://x.example/mcp", "https://user:pass@as.example/token", false},
		{"https://x.example/mcp", "file:///etc/passwd", false},
		{"https://x.example/mcp", "javascript:alert(1)", false},
		{"https://x.example/mcp", "/token", false},
		{"https://x.example/mcp", "https://", false},
		{"https://x.example/mcp", "%", false},
	} {
		_, err := newWeb(address(t, c.server)).allowed(c.address)
		require.Equal(t, c.ok, err == nil, c.address)
	}
}

// A server's metadata leads to no network that is narrower than its own.
func TestNetworks(t *testing.T) {
	for ip, want := range map[string]int{
		"8.8.8.8": public, "2001:4860::1": public, "10.1.2.3": private, "172.16.0.1": private, "192.168.1.1": private, "100.64.0.1": private, "fd00::1": private,
		"127.0.0.1": loopback, "127.9.9.9": loopback, "::1": loopback, "::ffff:127.0.0.1": loopback, "::ffff:10.0.0.1": private,
		"169.254.169.254": nowhere, "fe80::1": nowhere, "0.0.0.0": nowhere, "::": nowhere, "224.0.0.1": nowhere, "::ffff:169.254.169.254": nowhere,
	} {
		require.Equal(t, want, networkOf(netip.MustParseAddr(ip)), ip)
	}
	for _, c := range []struct {
		server, at string
		ok         bool
	}{
		{"https://8.8.8.8/mcp", "1.1.1.1:443", true},
		{"https://8.8.8.8/mcp", "10.0.0.1:443", false},
		{"https://8.8.8.8/mcp", "127.0.0.1:443", false},
		{"https://8.8.8.8/mcp", "169.254.169.254:443", false},
		{"https://10.0.0.1/mcp", "10.0.0.2:443", true},
		{"https://10.0.0.1/mcp", "[::1]:443", false},
		{"http://127.0.0.1/mcp", "127.0.0.1:80", true},
		{"http://127.0.0.1/mcp", "10.0.0.1:80", true},
		{"http://127.0.0.1/mcp", "169.254.169.254:80", false},
		{"https://169.254.1.1/mcp", "127.0.0.1:443", false},
		{"https://no-such-host.invalid/mcp", "10.0.0.1:443", false},
		{"https://8.8.8.8/mcp", "name:443", false},
	} {
		require.Equal(t, c.ok, newWeb(address(t, c.server)).reachable(t.Context(), c.at) == nil, "%s %s", c.server, c.at)
	}
}

func TestWhichResourceIsTheServer(t *testing.T) {
	for _, c := range []struct {
		server, resource string
		is               bool
	}{
		{"https://x.example/a/mcp", "https://x.example/a/mcp", true},
		{"https://x.example/a/mcp", "https://x.example/a/mcp/", true},
		{"https://x.example/a/mcp/", "https://x.example/a/mcp", true},
		{"https://x.example/a/mcp", "https://x.example/a", true},
		{"https://x.example/a/mcp", "https://x.example", true},
		{"https://x.example/a/mcp", "HTTPS://X.example:443/", true},
		{"https://x.example/a/mcp", "https://x.example/a/m", false},
		{"https://x.example/a/mcp", "https://x.example/a/mcp/deep", false},
		{"https://x.example/a/mcp", "https://y.example/a/mcp", false},
		{"https://x.example/a/mcp", "http://x.example/a/mcp", false},
		{"https://x.example/a/mcp", "https://x.example:8443/a/mcp", false},
		{"https://x.example/a/mcp", "%", false},
	} {
		require.Equal(t, c.is, (&Client{server: address(t, c.server)}).covers(c.resource), c.resource)
	}
}

// Whatever a server writes into its challenge, reading it ends.
func TestChallengesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"Bearer", "Basic", " ", ",", "=", `"`, `\`, "scope", "resource_metadata", "https://x.example", "a b", "error"})
		line := strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "")
		challenged([]string{line, rapid.String().Draw(t, "other")})
	})
	at, scopes := challenged([]string{`Basic realm="x"`, `broken "`, `Bearer scope="a  b", resource_metadata="https://x.example/m"`})
	require.Equal(t, "https://x.example/m", at)
	require.Equal(t, []string{"a", "b"}, scopes)
}

// issuing is a client whose authorization server a test answers for, over TLS.
func issuing(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewTLSServer(answer)
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	c := New(Config{ClientID: "c", Secret: "the secret", TokenURL: srv.URL + "/token"}, address(t, srv.URL+"/mcp"), zerolog.Nop())
	c.web.tls = &tls.Config{RootCAs: roots}
	return c
}

func give(w http.ResponseWriter, token string, lives int) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer","expires_in":%d}`, token, lives)
}

// A token serves until shortly before its end. If none can be fetched then, it serves until its end.
func TestTheLifeOfAToken(t *testing.T) {
	var n atomic.Int64
	var down atomic.Bool
	c := issuing(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1); down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		give(w, fmt.Sprint("token ", n.Load()), 3600)
	})
	start := time.Now()
	now := start
	c.now = func() time.Time { return now }
	token := func() string {
		got, err := c.Token(t.Context())
		require.NoError(t, err)
		return got
	}
	require.Equal(t, "token 1", token())
	now = start.Add(time.Hour - 2*margin)
	require.Equal(t, "token 1", token())
	now = start.Add(time.Hour - margin/2)
	require.Equal(t, "token 2", token())

	down.Store(true)
	now = now.Add(time.Hour - margin/2)
	require.Equal(t, "token 2", token())
	now = now.Add(margin)
	_, err := c.Token(t.Context())
	require.ErrorContains(t, err, "it answers 503 Service Unavailable")
	asked := n.Load()
	_, err = c.Token(t.Context())
	require.Error(t, err)
	require.Equal(t, asked, n.Load(), "a failure counts for a moment")
	down.Store(false)
	now = now.Add(again)
	require.Contains(t, token(), "token ")
}

// Many requests at once fetch one token, and a token that was just fetched is not replaced at once.
func TestRefusedTokens(t *testing.T) {
	var n atomic.Int64
	c := issuing(t, func(w http.ResponseWriter, _ *http.Request) { give(w, fmt.Sprint("token ", n.Add(1)), 0) })
	now := time.Now()
	c.now = func() time.Time { return now }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			got, err := c.Renew(context.Background(), "", nil)
			if err != nil || got != "token 1" {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	same, err := c.Renew(t.Context(), "token 1", nil)
	require.NoError(t, err)
	require.Equal(t, "token 1", same)
	now = now.Add(again)
	other, err := c.Renew(t.Context(), "token 1", nil)
	require.NoError(t, err)
	require.Equal(t, "token 2", other)
	require.EqualValues(t, 2, n.Load())
	require.Equal(t, "a [redacted] and [redacted]", c.Clean("a token 2 and the secret"))
}

// The secret goes to no other address than that of tokens.
func TestTokenRequestsAreNotRedirected(t *testing.T) {
	var stolen atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		stolen.Store(strings.Contains(string(b)+req.Header.Get("Authorization"), "secret") || req.Header.Get("Authorization") != "")
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		c := issuing(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, elsewhere.URL, status) })
		_, err := c.Token(t.Context())
		var e *Error
		require.ErrorAs(t, err, &e)
		require.ErrorContains(t, err, fmt.Sprint("it answers ", status))
	}
	require.False(t, stolen.Load())
}

// Answers of any kind end in a token or a reason, which holds no secret.
func TestOddAnswersOfAnAuthorizationServer(t *testing.T) {
	for body, want := range map[string]string{
		`{"access_token":"t","token_type":"Bearer","expires_in":"3600"}`: "",
		`{"access_token":"t","token_type":"Bearer","expires_in":null}`:   "",
		`{"access_token":"t"}`:           "",
		`{"access_token":"","error":""}`: "missing access_token",
		`{"error":"the secret"}`:         "[redacted]",
		`the secret`:                     "json",
		`{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`: "json",
	} {
		c := issuing(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		got, err := c.Token(t.Context())
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, "t", got)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "the secret")
	}
	c := New(Config{ClientID: "c", Secret: "the secret", TokenURL: "https://127.0.0.1:1/token"}, address(t, "https://127.0.0.1:1"), zerolog.Nop())
	_, err := c.Token(t.Context())
	require.ErrorContains(t, err, "OAuth: the authorization server at 127.0.0.1:1: dial tcp")
	ctx, cancel := context.WithCancelCause(t.Context())
	c.lock <- struct{}{}
	cancel(errors.New("stopped"))
	_, err = c.Token(ctx)
	require.ErrorContains(t, err, "stopped")
}

// Large and slow metadata is bounded, and found over TLS.
func TestMetadataOverTLS(t *testing.T) {
	var doc string
	srv := httptest.NewUnstartedServer(nil)
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/.well-known/oauth-protected-resource":
			_, _ = io.WriteString(w, doc)
		case "/.well-known/oauth-authorization-server":
			_, _ = fmt.Fprintf(w, `{"issuer":"https://%s","token_endpoint":"https://%s/t"}`, req.Host, req.Host)
		case "/t":
			give(w, "token", 60)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	for text, want := range map[string]string{
		`{"authorization_servers":["` + srv.URL + `"]}`:  "",
		`{"authorization_servers":[]}`:                   "",
		`not JSON`:                                       "",
		`{"authorization_servers":["http://127.0.0.1"]}`: "is not https",
		strings.Repeat("x", maxMetadata+1):               "is larger than",
	} {
		doc = text
		c := New(Config{ClientID: "c", Secret: "the secret"}, address(t, srv.URL+"/mcp"), zerolog.Nop())
		c.web.tls = &tls.Config{RootCAs: roots}
		got, err := c.Renew(t.Context(), "", nil)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "token", got)
	}
	strict := New(Config{ClientID: "c", Secret: "the secret"}, address(t, srv.URL+"/mcp"), zerolog.Nop())
	_, err := strict.Renew(t.Context(), "", nil)
	require.ErrorContains(t, err, "certificate", "an authority that nobody knows")
}
