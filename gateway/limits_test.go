package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	httpanswer "github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/proto-schemas/event"
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
	for _, raw := range []string{ // http.Server answers these itself
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"GET /livez HTTP/1.1\r\n\r\n",
		"GET /livez HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n", // after an answer
	} {
		nc, err := net.Dial("tcp", r.addr)
		require.NoError(t, err)
		go func() { _, _ = io.WriteString(nc, raw) }()
		in := bufio.NewReader(nc)
		for n := range strings.Count(raw, "\r\n\r\n") {
			res, err := http.ReadResponse(in, nil)
			require.NoError(t, err, "%.60q", raw)
			require.Equal(t, []string{"no-store", "nosniff"}, []string{res.Header.Get("Cache-Control"), res.Header.Get("X-Content-Type-Options")}, "%.60q %d", raw, n)
			_, _ = io.Copy(io.Discard, res.Body)
			require.NoError(t, res.Body.Close())
		}
		require.NoError(t, nc.Close())
	}
	_, _, header := r.get(streamOf(l), append(bearer("alice"), "Accept", "application/jsonl")...)
	require.Equal(t, []string{"no-store", "nosniff"}, []string{header.Get("Cache-Control"), header.Get("X-Content-Type-Options")})
	s := r.reads(streamOf(l), bearer("alice")...)
	require.Equal(t, "nosniff", s.res.Header.Get("X-Content-Type-Options"))
}

// asks sends a request on a connection that takes hardly anything which is not read.
func (r *rig) asks(path string, header ...string) net.Conn {
	r.t.Helper()
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	nc, err := narrow.DialContext(r.t.Context(), "tcp", r.addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = nc.Close() })
	head := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n"
	for i := 0; i < len(header); i += 2 {
		head += header[i] + ": " + header[i+1] + "\r\n"
	}
	_, err = io.WriteString(nc, head+"\r\n")
	require.NoError(r.t, err)
	require.NoError(r.t, nc.SetDeadline(time.Now().Add(maxWait)))
	return nc
}

// TestSlowReadersTakeNoMemory of others: a principal's pages in progress have a bound in bytes. Beyond it the principal is
// told to read first, and all others get their pages.
func TestSlowReadersTakeNoMemory(t *testing.T) {
	const each = 30
	r := start(t, authenticated(key("alice", "acme"), key("bob", "acme"), key("carol", "acme")), func(c *gateway.Config, _ *gateway.Deps) { c.WriteStall = 4 * maxWait })
	l := r.session("acme")
	for range 19 {
		r.answers(l, strings.Repeat("x", 200<<10))
	}
	page := "/api/v1/sessions/" + l.Entity.String() + "/events"
	var readers []net.Conn
	for range each {
		for _, who := range []string{"alice", "bob"} {
			readers = append(readers, r.asks(page, bearer(who)...))
		}
	}
	held, told, refused := 0, 0, 0
	for _, nc := range readers {
		br := bufio.NewReaderSize(nc, 1<<10)
		res, err := http.ReadResponse(br, nil)
		require.NoError(t, err)
		if res.StatusCode == http.StatusOK {
			held++
			continue // and never read
		}
		refused++
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		if res.StatusCode == http.StatusTooManyRequests {
			told++
			require.Contains(t, string(body), "RATE_LIMITED")
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode, "%s", body) // a slow machine makes few pages in time
		require.Contains(t, string(body), "OVERLOADED")
	}
	require.GreaterOrEqual(t, held, 2, "pages are sent")
	require.Positive(t, refused)
	require.Positive(t, told)
	require.LessOrEqual(t, held, 2*httpanswer.DefaultRoom/3/(3<<20), "beyond a third of the room for each principal, none is")
	status, _, _ := r.get("/api/v1/sessions/"+l.Entity.String()+"/events?limit=1", bearer("carol")...)
	require.Equal(t, http.StatusOK, status, "others are answered")
	status, _, _ = r.get("/api/v1/me", bearer("alice")...)
	require.Equal(t, http.StatusOK, status, "small answers need no room")
	for _, nc := range readers {
		_ = nc.Close()
	}
	eventually(t, "the room is free", func() bool {
		status, _, _ := r.get(page, bearer("alice")...)
		return status == http.StatusOK
	})
}

// TestSlowThreadsTakeNoMemory of others: a thread of AG-UI with all its messages is a large answer like a page, for a viewer that
// joins and for one that comes back.
func TestSlowThreadsTakeNoMemory(t *testing.T) {
	const each, messages = 20, 9
	r := start(t, authenticated(key("alice", "acme"), key("bob", "acme"), key("carol", "acme")), func(c *gateway.Config, _ *gateway.Deps) { c.WriteStall = 4 * maxWait })
	l := r.session("acme")
	for i := range messages {
		run := fmt.Sprint("r", i)
		r.happens(l, append(running(run),
			event.MessageCompletedData{RunID: "w-" + run, MessageID: "m-" + run, Attempt: 1, Content: strings.Repeat("x", 200<<10), StopReason: event.StopEnd},
			event.RunCompletedData{RunID: "w-" + run, MessageID: "m-" + run, Attempt: 1})...)
	}
	r.happens(l, running("open")...)
	path := "/agui/threads/" + l.Entity.String() + "?follow=1"
	var readers []net.Conn
	for range each {
		for _, who := range []string{"alice", "bob"} {
			readers = append(readers, r.asks(path, bearer(who)...))
		}
	}
	held, refused := 0, 0
	for _, nc := range readers {
		res, err := http.ReadResponse(bufio.NewReaderSize(nc, 1<<10), nil)
		require.NoError(t, err)
		if res.StatusCode == http.StatusOK {
			held++
			continue // and never read
		}
		refused++
		require.Contains(t, []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, res.StatusCode)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		require.NoError(t, res.Body.Close())
	}
	require.GreaterOrEqual(t, held, 2, "threads are shown")
	require.Positive(t, refused)
	require.LessOrEqual(t, held*messages*(200<<10), 2*httpanswer.DefaultRoom/3, "beyond a third of the room for each principal, none is")
	status, _, _ := r.request(http.MethodHead, path, bearer("carol")...)
	require.Equal(t, http.StatusOK, status, "others are answered")
	for _, nc := range readers {
		_ = nc.Close()
	}
	eventually(t, "the room is free", func() bool {
		nc := r.asks(path, bearer("alice")...)
		defer func() { _ = nc.Close() }()
		res, err := http.ReadResponse(bufio.NewReader(nc), nil) //nolint:bodyclose // its connection is closed
		require.NoError(t, err)
		return res.StatusCode == http.StatusOK
	})
}

// TestReadersThatDoNotRead an answer are cut off, and free the gateway of it.
func TestReadersThatDoNotRead(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.WriteStall = time.Second })
	l := r.session("default")
	for range 19 { // more than the buffers of the kernel hold
		r.answers(l, strings.Repeat("x", 200<<10))
	}
	nc := r.asks("/api/v1/sessions/" + l.Entity.String() + "/events")
	br := bufio.NewReader(nc)
	_, err := br.Peek(1) // the answer has begun
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
	const stall = time.Second
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.WriteStall = stall })
	c := r.tcp()
	var last time.Time
	for range 3 {
		c.write([]byte("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		status, _ := c.answer()
		require.Equal(t, http.StatusOK, status)
		last = time.Now()
		eventually(t, "the deadline has passed", func() bool { return time.Since(last) > stall+stall/10 })
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

// TestStreamsOverTheRate of a principal: the request for a stream costs as much as any other, in every protocol.
func TestStreamsOverTheRate(t *testing.T) {
	r := start(t, behindProxies, authenticated(key("alice", "acme"), key("bob", "acme"), key("carol", "acme")), func(c *gateway.Config, _ *gateway.Deps) { c.RequestRate = 0.001 })
	l := r.session("acme", "one")
	events, thread := streamOf(l), "/agui/threads/"+l.Entity.String()+"?follow=1"
	n := 0
	next := func(who string) []string { // every request comes from another address
		n++
		return append(bearer(who), "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n))
	}
	r.reads(events, next("alice")...).must()
	r.reads(thread, next("bob")...)
	for _, who := range []string{"alice", "bob"} {
		for _, path := range []string{events, thread, "/api/v1/live"} {
			status, body, header := r.get(path, next(who)...)
			require.Equal(t, http.StatusTooManyRequests, status, "%s %s: %s", who, path, body)
			require.Contains(t, body, "RATE_LIMITED")
			require.NotEmpty(t, header.Get("Retry-After"))
		}
		status, body := r.post("/agui", `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"x"}]}`, next(who)...)
		require.Equal(t, http.StatusTooManyRequests, status, "%s: %s", who, body)
	}
	r.reads(events, next("carol")...).must()
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
