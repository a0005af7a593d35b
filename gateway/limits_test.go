package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

// TestEveryAnswerHasTheHeaders: browsers neither keep it nor guess its type.
func TestEveryAnswerHasTheHeaders(t *testing.T) {
	r := start(t, authenticated(key("alice", "acme")))
	l := r.session("acme", "one")
	for _, c := range []struct{ method, path, key string }{
		{"GET", "/livez", ""},
		{"GET", "/readyz", ""},
		{"GET", "/health", ""},
		{"GET", "/nothing", ""},
		{"GET", "/ws", ""},
		{"GET", "/api/v1/openapi.json", ""},
		{"GET", "/api/v1/schemas/orbit", ""},
		{"GET", "/api/v1/sessions", ""},
		{"GET", "/api/v1/sessions", "alice"},
		{"GET", "/api/v1/sessions/none", "alice"},
		{"HEAD", streamOf(l), "alice"},
		{"OPTIONS", "/api/v1/sessions", ""},
	} {
		_, _, header := r.request(c.method, c.path, bearer(c.key)...)
		require.Equal(t, []string{"no-store", "nosniff"}, []string{header.Get("Cache-Control"), header.Get("X-Content-Type-Options")}, "%s %s", c.method, c.path)
	}
	_, _, header := r.get(streamOf(l), append(bearer("alice"), "Accept", "application/jsonl")...)
	require.Equal(t, []string{"no-store", "nosniff"}, []string{header.Get("Cache-Control"), header.Get("X-Content-Type-Options")})
	s := r.reads(streamOf(l), bearer("alice")...)
	require.Equal(t, "nosniff", s.res.Header.Get("X-Content-Type-Options"))
}

// TestReadersThatDoNotRead an answer are cut off, and free the gateway of it.
func TestReadersThatDoNotRead(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.WriteStall = 50 * time.Millisecond })
	l := r.session("default")
	for range 19 { // more than the buffers of the kernel hold
		r.answers(l, strings.Repeat("x", 200<<10))
	}
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	nc, err := narrow.DialContext(t.Context(), "tcp", r.addr)
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	_, err = io.WriteString(nc, "GET /api/v1/sessions/"+l.Entity.String()+"/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	br := bufio.NewReader(nc)
	_, err = br.Peek(1) // the answer has begun
	require.NoError(t, err)
	eventually(t, "the gateway has let go of the connection", func() bool { return r.metric("waggle_gateway_http_requests") == 0 })
	res, err := http.ReadResponse(br, nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	require.Error(t, err, "the answer was cut off")
}

// TestAnswersInARow: the deadline of one answer does not end the next one on the same connection.
func TestAnswersInARow(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.WriteStall = 50 * time.Millisecond })
	c := r.tcp()
	var last time.Time
	for range 3 {
		c.write([]byte("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		status, _ := c.answer()
		require.Equal(t, http.StatusOK, status)
		last = time.Now()
		eventually(t, "the deadline has passed", func() bool { return time.Since(last) > 100*time.Millisecond })
	}
}

// TestRequestsOverTheRate of a principal and of an address.
func TestRequestsOverTheRate(t *testing.T) {
	r := start(t, behindProxies, authenticated(key("alice", "acme"), key("bob", "acme")), func(c *gateway.Config, _ *gateway.Deps) { c.RequestRate = 0.001 })
	ask := func(who, from string) (int, string, http.Header) {
		return r.get("/api/v1/sessions", append(bearer(who), "X-Forwarded-For", from)...)
	}
	status, body, _ := ask("alice", "198.51.100.1")
	require.Equal(t, http.StatusOK, status, body)
	status, body, header := ask("alice", "198.51.100.2")
	require.Equal(t, http.StatusTooManyRequests, status, "the principal, from another address")
	require.Contains(t, body, "RATE_LIMITED")
	require.NotEmpty(t, header.Get("Retry-After"))
	status, body, header = ask("bob", "198.51.100.1")
	require.Equal(t, http.StatusTooManyRequests, status, "another principal, from the same address")
	require.Contains(t, body, "RATE_LIMITED")
	require.NotEmpty(t, header.Get("Retry-After"))
	status, body, _ = ask("bob", "198.51.100.3")
	require.Equal(t, http.StatusOK, status, body)
}

// TestRequestsAtOnce of a principal and of an address.
func TestRequestsAtOnce(t *testing.T) {
	r := start(t, behindProxies, authenticated(key("alice", "acme"), key("bob", "acme")), func(c *gateway.Config, _ *gateway.Deps) { c.Requests = 1 })
	l := r.session("acme", "one")
	for range 2 {
		stream := r.reads(streamOf(l), append(bearer("bob"), "X-Forwarded-For", "198.51.100.1")...)
		stream.must()
	}
	slow := r.tcp()
	slow.write([]byte("POST /api/v1/teams HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\nX-Forwarded-For: 198.51.100.1\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"))
	line, err := slow.br.ReadString('\n') // once the handler reads the body
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue")
	for who, from := range map[string]string{"alice": "198.51.100.2", "bob": "198.51.100.1"} {
		status, body, _ := r.get("/api/v1/sessions", append(bearer(who), "X-Forwarded-For", from)...)
		require.Equal(t, http.StatusTooManyRequests, status, "%s: %s", who, body)
	}
	status, body, _ := r.get("/api/v1/sessions", append(bearer("bob"), "X-Forwarded-For", "198.51.100.3")...)
	require.Equal(t, http.StatusOK, status, "streams count as connections: %s", body)
	_ = slow.Conn.Close()
	eventually(t, "the request has ended", func() bool {
		status, _, _ := r.get("/api/v1/sessions", append(bearer("alice"), "X-Forwarded-For", "198.51.100.4")...)
		return status == http.StatusOK
	})
}
