package gateway_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
)

// silent opens connections that send what is given, and nothing more. The test reads nothing.
func silent(t testing.TB, addr string, n int, send string) (all []net.Conn) {
	t.Helper()
	for range n {
		nc, err := net.DialTimeout("tcp", addr, maxWait)
		require.NoError(t, err)
		t.Cleanup(func() { _ = nc.Close() })
		_, err = io.WriteString(nc, send)
		require.NoError(t, err)
		all = append(all, nc)
	}
	return all
}

// handshakeOf is a request for a socket without credentials.
func handshakeOf(r *rig) string {
	return "GET " + r.path + " HTTP/1.1\r\nHost: " + r.addr + "\r\n" + upgradeHeader + keyHeader + "\r\n"
}

// TestSilentStrangers: connections without credentials fill their pool, and neither keep out
// clients with credentials nor turn readiness off.
func TestSilentStrangers(t *testing.T) {
	for name, send := range map[string]func(*rig) string{
		"connections that send nothing":           func(*rig) string { return "" },
		"half a request":                          func(r *rig) string { return "GET /ws HTTP/1.1\r\nHost: " + r.addr + "\r\n" },
		"sockets that never send credentials":     handshakeOf,
		"idle after a request that needs no keys": func(r *rig) string { return "GET /livez HTTP/1.1\r\nHost: " + r.addr + "\r\n\r\n" },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, authenticated(key("alice", "red")), func(c *gateway.Config, _ *gateway.Deps) {
				c.MaxConnections, c.FirstMessage, c.MessageTimeout = 4, maxWait, maxWait
			})
			first := r.dial("", bearer("alice")...)
			first.ready()
			silent(t, r.addr, 60, send(r))
			require.LessOrEqual(t, r.metric("waggle_gateway_unauthenticated"), 16.0)
			eventually(t, "the gateway is ready", func() bool { // a probe gives up before a check of the bus on a busy machine does
				status, _, _ := r.get("/readyz")
				return status == http.StatusOK
			})
			for range 2 {
				c := r.dial("", bearer("alice")...)
				c.ready()
			}
			late := r.dial("")
			late.write(text(`{"type":"auth","token":"alice"}`))
			late.ready()
			require.GreaterOrEqual(t, r.metric("waggle_gateway_evicted_total"), 40.0)
			first.write(frame(fin|opPing, []byte("alive")))
			op, payload, err := first.read()
			require.NoError(t, err)
			require.EqualValues(t, opPong, op)
			require.Equal(t, "alive", string(payload))
			_, status, body := r.handshake("", bearer("alice")...)
			require.Equal(t, http.StatusServiceUnavailable, status, "the limit holds for clients with credentials: %s", body)
		})
	}
}

// TestRequestsOnOneConnectionDisplaceNoOther: a connection that asks again and again has one place of the pool.
func TestRequestsOnOneConnectionDisplaceNoOther(t *testing.T) {
	r := start(t, authenticated(key("alice", "red")), func(c *gateway.Config, _ *gateway.Deps) {
		c.MaxConnections, c.FirstMessage, c.MessageTimeout = 4, maxWait, maxWait // 16 strangers
	})
	silent(t, r.addr, 15, "")
	nc, err := net.DialTimeout("tcp", r.addr, maxWait)
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	in := bufio.NewReader(nc)
	for range 50 {
		_, err := io.WriteString(nc, "GET /livez HTTP/1.1\r\nHost: "+r.addr+"\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.Zero(t, r.metric("waggle_gateway_evicted_total"))
}

// TestEvictedStrangersLearnWhy: as a close code, or as a problem document.
func TestEvictedStrangersLearnWhy(t *testing.T) {
	r := start(t, authenticated(key("alice", "red")), func(c *gateway.Config, _ *gateway.Deps) {
		c.MaxConnections, c.FirstMessage = 1, maxWait
	})
	waiting := r.dial("")
	quiet := silent(t, r.addr, 1, "")[0]
	silent(t, r.addr, 32, "")
	s := waiting.must("error")
	require.Equal(t, "OVERLOADED", s.Data.Code)
	waiting.closes(1013)
	require.NoError(t, quiet.SetDeadline(time.Now().Add(maxWait)))
	res, err := http.ReadResponse(bufio.NewReader(quiet), nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Contains(t, string(body), "OVERLOADED")
}

// TestWithoutCredentialsOnLoopback: a connection counts as unauthenticated until its handshake
// is admitted.
func TestWithoutCredentialsOnLoopback(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.MaxConnections = 30 })
	for range 29 {
		r.dial("").ready()
	}
	silent(t, r.addr, 50, "")
	status, body, _ := r.get("/readyz")
	require.Equal(t, http.StatusOK, status, body)
	r.dial("").ready()
	_, status, _ = r.handshake("")
	require.Equal(t, http.StatusServiceUnavailable, status)
}

// TestThousandsOfSilentSockets with a limit of 1,000: all clients with credentials get in.
func TestThousandsOfSilentSockets(t *testing.T) {
	const strangers, clients = 2000, 100
	var files syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	require.Greater(t, files.Cur, uint64(2*strangers), "ulimit -n")
	r := start(t, authenticated(key("alice", "red")), func(c *gateway.Config, _ *gateway.Deps) {
		c.MaxConnections, c.FirstMessage = 1000, maxWait
	})
	silent(t, r.addr, strangers/2, "")
	silent(t, r.addr, strangers/2, handshakeOf(r))
	for range clients {
		r.dial("", bearer("alice")...).ready()
	}
	require.LessOrEqual(t, r.metric("waggle_gateway_unauthenticated"), 50.0)
	status, body, _ := r.get("/readyz")
	require.Equal(t, http.StatusOK, status, body)
}

// behindProxies has the gateway trust loopback as a proxy.
func behindProxies(c *gateway.Config, _ *gateway.Deps) {
	c.TrustedProxies, c.PerIP = []string{"127.0.0.0/8"}, 2
}

// TestClientsBehindAProxy are counted by their own addresses, whatever else they claim.
func TestClientsBehindAProxy(t *testing.T) {
	r := start(t, behindProxies)
	for _, client := range []string{"198.51.100.7", "198.51.100.8"} {
		for range 2 {
			r.dial("", "X-Forwarded-For", client).ready()
		}
		_, status, body := r.handshake("", "X-Forwarded-For", client)
		require.Equal(t, http.StatusTooManyRequests, status, body)
		_, status, _ = r.handshake("", "X-Forwarded-For", "192.0.2.1, "+client, "Forwarded", "for=192.0.2.2")
		require.Equal(t, http.StatusTooManyRequests, status, "an address that the client made up")
	}
	_, status, body := r.handshake("", "X-Forwarded-For", "nonsense")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, "X-Forwarded-For")

	untrusting := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.PerIP = 1 })
	untrusting.dial("", "X-Forwarded-For", "198.51.100.7").ready()
	_, status, _ = untrusting.handshake("", "X-Forwarded-For", "198.51.100.8")
	require.Equal(t, http.StatusTooManyRequests, status, "by default no peer is a proxy")
}

// TestThePROXYProtocol names the client before HTTP, and only trusted proxies may send it.
func TestThePROXYProtocol(t *testing.T) {
	r := start(t, behindProxies, func(c *gateway.Config, _ *gateway.Deps) { c.ProxyProtocol = true })
	second := append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"), 198, 51, 100, 9, 127, 0, 0, 1)
	second = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(second, 4711), 9000)
	for version, header := range map[int][]byte{1: []byte("PROXY TCP4 198.51.100.7 127.0.0.1 4711 9000\r\n"), 2: second} {
		open := func() (*client, int) {
			c := r.tcp()
			c.write(append(header, handshakeOf(r)...))
			status, _ := c.answer()
			return c, status
		}
		for range 2 {
			c, status := open()
			require.Equal(t, http.StatusSwitchingProtocols, status)
			c.ready()
			c.write(message(strings.Repeat("long ", 1000)))
		}
		_, status := open()
		require.Equal(t, http.StatusTooManyRequests, status, "version %d", version)
	}
	c := r.tcp()
	c.write([]byte(handshakeOf(r)))
	_, err := c.br.ReadByte()
	require.Error(t, err, "a trusted proxy without the header")

	other := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.TrustedProxies, c.ProxyProtocol = []string{"192.0.2.0/24"}, true
	})
	c = other.tcp()
	c.write([]byte("PROXY TCP4 198.51.100.7 127.0.0.1 4711 9000\r\n" + handshakeOf(other)))
	status, _ := c.answer()
	require.Equal(t, http.StatusBadRequest, status, "a stranger that pretends to be a proxy")
	other.dial("").ready()

	p := prepare(t, sharedBus(t))
	_, err = gateway.New(gateway.Config{Addr: "127.0.0.1:0", ProxyProtocol: true}, p.deps())
	require.ErrorContains(t, err, "gateway.trusted_proxies")
}

// TestAuditRecordsNameTheClientBehindAProxy: its address is that of the trusted proxy's header, on sockets, streams, requests and
// failed logins.
func TestAuditRecordsNameTheClientBehindAProxy(t *testing.T) {
	t.Parallel()
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Remote: auditlog.RemotePlain})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	r := startOn(t, c, behindProxies, authenticated(key("alice", "red")), func(_ *gateway.Config, d *gateway.Deps) { d.Audit = w })
	from := func(client string, header ...string) []string {
		return append(header, "X-Forwarded-For", "192.0.2.1, "+client)
	}
	r.dial("", from("198.51.100.1", bearer("alice")...)...).ready()
	_, status, _ := r.handshake("", from("198.51.100.2", bearer("a-wrong-secret")...)...)
	require.Equal(t, http.StatusUnauthorized, status)
	status, _, _ = r.get("/api/v1/sessions", from("198.51.100.3", bearer("a-wrong-secret")...)...)
	require.Equal(t, http.StatusUnauthorized, status)
	l := r.session("red", "one")
	r.reads(streamOf(l), from("198.51.100.4", bearer("alice")...)...).must()
	want := map[string]string{
		"198.51.100.1": audit.Connected.String(), "198.51.100.2": audit.AuthFailed.String(), "198.51.100.3": audit.AuthFailed.String(), "198.51.100.4": audit.Connected.String(),
	}
	reader := bustest.Dial(t, i.URL)
	eventually(t, "all records are there", func() bool {
		seen := map[string]string{}
		require.NoError(t, auditlog.Read(t.Context(), reader, auditlog.Query{}, func(rec audit.Record) error {
			if rec.Remote != "" && seen[rec.Remote] == "" {
				seen[rec.Remote] = rec.Action
			}
			return nil
		}))
		return maps.Equal(want, seen)
	})
}
