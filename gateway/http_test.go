package gateway_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/telemetry"
)

// The answer has the fields of the protocol's document and no others.
func TestHealth(t *testing.T) {
	r := start(t)
	r.dial("").ready()
	status, body, header := r.get("/health")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "application/json", header.Get("Content-Type"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	stamp, ok := got["timestamp"].(string)
	require.True(t, ok)
	require.Regexp(t, regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`), stamp)
	delete(got, "timestamp")
	require.Equal(t, map[string]any{"status": "healthy", "service": "ORBIT WebSocket Server", "active_connections": 1.0}, got)
}

func TestProbes(t *testing.T) {
	r := start(t)
	for _, path := range []string{"/livez", "/readyz", "/health"} {
		status, body, _ := r.get(path, "Host", "10.1.2.3:9000")
		require.Equal(t, http.StatusOK, status, "%s: %s", path, body)
	}
}

// TestClientsSeeNoMetrics and no profiles: the gateway's listener does not have them.
func TestClientsSeeNoMetrics(t *testing.T) {
	r := start(t, authenticated(key("k", "default", auth.RoleOperator)))
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/vars"} {
		status, body, _ := r.get(path, bearer("k")...)
		require.Equal(t, http.StatusNotFound, status, path)
		require.NotContains(t, body, "waggle_")
	}
}

func TestProblems(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		title        string
	}{
		{"GET", "/nothing", nil, 404, "NOT_FOUND"},
		{"GET", "/api/v1/nothing", nil, 404, "NOT_FOUND"},
		{"POST", "/ws", nil, 404, "NOT_FOUND"},
		{"GET", "/ws", nil, 426, "INVALID_FIELD"},
		{"GET", "/api/v1/schemas", []string{"Host", "evil.net"}, 421, "HOST_REFUSED"},
		{"GET", "/api/v1/schemas", []string{"Origin", "http://evil.net"}, 403, "ORIGIN_REFUSED"},
		{"GET", "/api/v1/schemas/orbit", []string{"Host", "evil.net"}, 421, "HOST_REFUSED"},
		{"GET", "/api/v1/schemas/orbit", []string{"Origin", "http://evil.net"}, 403, "ORIGIN_REFUSED"},
		{"POST", "/api/v1/schemas", nil, 405, "METHOD_NOT_ALLOWED"},
		{"PUT", "/api/v1/nothing", nil, 404, "NOT_FOUND"},
		{"OPTIONS", "/api/v1/schemas", []string{"Origin", "http://evil.net"}, 403, "ORIGIN_REFUSED"},
	} {
		status, body, header := r.request(c.method, c.path, c.header...)
		require.Equal(t, c.status, status, "%s %s", c.method, c.path)
		require.Equal(t, "application/problem+json", header.Get("Content-Type"))
		var p map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &p))
		require.Equal(t, "about:blank", p["type"])
		require.Equal(t, c.title, p["title"])
		require.EqualValues(t, c.status, p["status"])
		require.NotEmpty(t, p["detail"])
		require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	}
	own := "http://" + r.addr
	status, _, header := r.get("/api/v1/schemas", "Origin", own)
	require.Equal(t, []any{200, "application/json", own}, []any{status, header.Get("Content-Type"), header.Get("Access-Control-Allow-Origin")})
	status, _, header = r.request("OPTIONS", "/api/v1/schemas", "Origin", own)
	require.Equal(t, http.StatusNoContent, status)
	require.Contains(t, header.Get("Access-Control-Allow-Headers"), "Authorization")
}

// TestOtherMethodsAreToldWhichOnesThereAre, and change nothing.
func TestOtherMethodsAreToldWhichOnesThereAre(t *testing.T) {
	r := start(t)
	for _, c := range [][3]string{
		{"GET", "/agui", "POST"},
		{"PUT", "/agui", "POST"},
		{"DELETE", "/agui/agents/writer", "POST"},
		{"POST", "/agui/teams/t/threads/x/messages", "GET"},
		{"PATCH", "/agui/threads/x/cancel", "POST"},
		{"PUT", "/api/v1/sessions", "GET, POST"},
		{"PATCH", "/api/v1/sessions/x", "GET, DELETE"},
		{"OPTIONS", "/agui/capabilities", "GET"},
	} {
		status, body, header := r.request(c[0], c[1])
		require.Equal(t, []any{http.StatusMethodNotAllowed, c[2]}, []any{status, header.Get("Allow")}, "%s %s", c[0], c[1])
		require.Contains(t, body, "METHOD_NOT_ALLOWED")
	}
}

const (
	upgradeHeader = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
	keyHeader     = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)

// Handshakes as they should not be, category 10 of the protocol cases.
func TestHandshakes(t *testing.T) {
	r := start(t)
	settled := r.settled()
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"right", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader, 101},
		{"right, in capitals", "GET /ws HTTP/1.1\r\nHost: localhost\r\nUPGRADE: WebSocket\r\nCONNECTION: keep-alive, UPGRADE\r\n" + keyHeader, 101},
		{"an extension is offered", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader + "Sec-WebSocket-Extensions: permessage-deflate\r\n", 101},
		{"a protocol is offered that we do not speak", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader + "Sec-WebSocket-Protocol: chat\r\n", 101},
		{"POST", "POST /ws HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + upgradeHeader + keyHeader, 404},
		{"PUT", "PUT /ws HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + upgradeHeader + keyHeader, 404},
		{"HTTP/1.0", "GET /ws HTTP/1.0\r\nHost: localhost\r\n" + upgradeHeader + keyHeader, 426},
		{"no Upgrade", "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n" + keyHeader, 426},
		{"no Connection", "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n" + keyHeader, 426},
		{"Connection: close", "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: close\r\n" + keyHeader, 426},
		{"another Upgrade", "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" + keyHeader, 426},
		{"no key", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + "Sec-WebSocket-Version: 13\r\n", 400},
		{"two keys", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", 400},
		{"short key", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n", 400},
		{"key that is no base64", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!==\r\n", 400},
		{"version 8", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400},
		{"no version", "GET /ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400},
		{"no host", "GET /ws HTTP/1.1\r\n" + upgradeHeader + keyHeader, 400},
		{"two hosts", "GET /ws HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n" + upgradeHeader + keyHeader, 400},
		{"other path", "GET /ws/ HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader, 404},
		{"path with dots", "GET /x/../ws HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader, 307},
		{"no HTTP", "hello, is this a chat?\r\n", 400},
		{"binary", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\r\n", 400},
		{"header without colon", "GET /ws HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n", 400},
		{"header with a line break", "GET /ws HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n" + upgradeHeader + keyHeader, 101},
		{"header with NUL", "GET /ws HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n" + upgradeHeader + keyHeader, 400},
		{"header of 32 KB", "GET /ws HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 32<<10) + "\r\n" + upgradeHeader + keyHeader, 431},
		{"query of 32 KB", "GET /ws?x=" + strings.Repeat("a", 32<<10) + " HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeader + keyHeader, 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := r.tcp()
			cl.write([]byte(c.request + "\r\n"))
			status, _ := cl.answer()
			require.Equal(t, c.status, status)
			if status == http.StatusSwitchingProtocols {
				require.Equal(t, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", cl.header.Get("Sec-WebSocket-Accept"))
				require.Empty(t, cl.header.Get("Sec-WebSocket-Extensions"))
				require.Empty(t, cl.header.Get("Sec-WebSocket-Protocol"))
				cl.ready()
				cl.leave()
			}
			_ = cl.Conn.Close()
		})
	}
	t.Run("frames right behind the request", func(t *testing.T) {
		c := r.tcp()
		c.write(append([]byte("GET /ws HTTP/1.1\r\nHost: localhost\r\n"+upgradeHeader+keyHeader+"\r\n"), join(text(kind("early")), frame(fin|opPing, []byte("p")))...))
		status, _ := c.answer()
		require.Equal(t, http.StatusSwitchingProtocols, status)
		c.ready()
		c.refused("UNKNOWN_MESSAGE_TYPE")
		c.leave()
	})
	settled()
}

func TestMetrics(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.MaxConnections = 1 })
	l := r.session("default", "one")
	c := r.dial("session=" + l.Entity.String() + "&after=0")
	c.ready()
	c.must("agent_response")
	c.write(text(kind("x")))
	c.refused("UNKNOWN_MESSAGE_TYPE")
	_, status, _ := r.handshake("")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, 1.0, r.metric("waggle_gateway_connections"))
	require.Equal(t, 1.0, r.metric("waggle_gateway_frames_in_total"))
	require.Equal(t, float64(len(kind("x"))), r.metric("waggle_gateway_received_bytes_total"))
	require.Equal(t, 1.0, r.metric("waggle_gateway_faults_total", "code", "UNKNOWN_MESSAGE_TYPE"))
	require.Equal(t, 1.0, r.metric("waggle_gateway_refused_total", "reason", "OVERLOADED"))
	eventually(t, "four frames are counted", func() bool { return r.metric("waggle_gateway_frames_out_total") == 4 })
	require.Positive(t, r.metric("waggle_gateway_sent_bytes_total"))
	c.leave()
	eventually(t, "the end is counted", func() bool { return r.metric("waggle_gateway_closes_total", "code", "1000") == 1 })

	eventually(t, "there is room again", func() bool { status, _, _ := r.get("/readyz"); return status == http.StatusOK })
	c = r.dial("")
	c.ready()
	c.write(closeWith(4321, ""))
	c.closes(4321)
	eventually(t, "a made-up code has no label of its own", func() bool { return r.metric("waggle_gateway_closes_total", "code", "other") == 1 })
	telemetry.Lint(t, r.reg)
	require.Equal(t, 1.0, r.metric("waggle_gateway_info"))
}
