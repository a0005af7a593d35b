package gateway_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) with(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

func loggingTo(l *lines) option {
	return func(_ *gateway.Config, d *gateway.Deps) { d.Logger = zerolog.New(l) }
}

func password(token string) []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+token))}
}

// TestOriginalsLogIn: clients of the original servers know an address and nothing else. They log in with the password of
// ws://me:KEY@host everywhere, and with ?token=KEY where the original servers listen.
func TestOriginalsLogIn(t *testing.T) {
	var log lines
	s := startSwarm(t, authenticated(key("alice", "red")), loggingTo(&log), func(c *gateway.Config, _ *gateway.Deps) {
		c.Legacy = []gateway.Listener{{"127.0.0.1:0", []string{"/ws"}}, {"127.0.0.1:0", []string{pathClient}}}
	})
	s.path = "/ws"
	s.dial("", password("alice")...).must("agent_start")
	_, status, _ := s.handshake("", password("mallory")...)
	require.Equal(t, http.StatusUnauthorized, status)
	_, status, body := s.handshake("", append(password("alice"), "Origin", "http://"+s.addr)...)
	require.Equal(t, http.StatusSwitchingProtocols, status, body)

	c := s.dial("token=alice") // not at an address of an original
	c.write(message("hi"))
	c.refused("UNAUTHENTICATED")

	s.addr = s.srv.LegacyAddrs()["/ws"].String()
	s.path = "/"
	s.dial("token=alice").must("agent_start")
	s.dial("token=mallory", bearer("alice")...).must("agent_start")
	_, status, body = s.handshake("token=mallory")
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, body, "mallory")
	s.addr = s.srv.LegacyAddrs()[pathClient].String()
	s.dial("token=alice").expectASP("orchestrator.client.welcome")
	s.dial("", password("alice")...).expectASP("orchestrator.client.welcome")
	require.Empty(t, log.with("mallory"))
	require.Empty(t, log.with("token=alice"))
}

// TestOriginalsAskForHealth where the original servers answer.
func TestOriginalsAskForHealth(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.Legacy = []gateway.Listener{{"127.0.0.1:0", []string{"/ws"}}}
	})
	for _, addr := range []string{r.addr, r.srv.LegacyAddrs()["/ws"].String()} {
		r.addr = addr
		for path, word := range map[string]string{"/health": "healthy", "/rest/health": "ok"} {
			status, body, _ := r.get(path)
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, body, `"status":"`+word+`"`)
		}
	}
	r.path = "/health"
	r.dial("").ready() // a socket under any path
}

// TestAPageWithAPasswordStillWaits: browsers send the password that a person typed for an address also for pages of others.
func TestAPageWithAPasswordStillWaits(t *testing.T) {
	r := start(t, authenticated(key("alice", "red")))
	c := r.dial("", append(password("alice"), "Origin", "http://"+r.addr)...)
	c.write(message("hi"))
	c.refused("UNAUTHENTICATED")
}

// TestRefusedPagesAreLoggedOnce with the configuration that allows them.
func TestRefusedPagesAreLoggedOnce(t *testing.T) {
	var log lines
	r := start(t, loggingTo(&log))
	for _, origin := range []string{"http://localhost:21080", "http://localhost:21080", "HTTP://LOCALHOST:21080", "null", "file://", "chrome-extension://abc", "http://a/b"} {
		_, status, _ := r.handshake("", "Origin", origin)
		require.Equal(t, http.StatusForbidden, status)
		status, _, _ = r.get("/api/v1/sessions", "Origin", origin)
		require.Equal(t, http.StatusForbidden, status)
	}
	refused := log.with("web page rejected: origin not allowed")
	require.Len(t, refused, 3)
	require.Contains(t, refused[0], `gateway: {allowed_origins: [\"http://localhost:21080\"]}`)
	for range 200 {
		_, status, _ := r.handshake("", "Origin", "https://"+unique()+".example")
		require.Equal(t, http.StatusForbidden, status)
	}
	require.Len(t, log.with("web page rejected: origin not allowed"), 64, "strangers cannot fill the log")
}

// TestPagesFromADisk may come in if the configuration lists them.
func TestPagesFromADisk(t *testing.T) {
	for _, origin := range []string{"null", "file://"} {
		r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.AllowedOrigins = []string{origin} })
		r.dial("", "Origin", origin).ready()
		_, status, _ := r.handshake("", "Origin", "https://evil.example")
		require.Equal(t, http.StatusForbidden, status)
	}
}
