package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

// pages are requests of pages, of other programs, and of pages that pretend.
// Without an origin the request does not come from a page.
var pages = []struct {
	name, host, origin string
	listed             int // status of a gateway that lists chat.example.com, with credentials
	loopback           int // status of a gateway without lists and credentials, on loopback
}{
	{"program, listed host", "chat.example.com", "", 101, 421},
	{"program, listed host, any port", "chat.example.com:8443", "", 101, 421},
	{"program, listed host in capitals", "CHAT.Example.COM", "", 101, 421},
	{"program, host listed with another port", "wss.example.com:1", "", 421, 421},
	{"program, host listed with this port", "wss.example.com:8443", "", 101, 421},
	{"program, other host", "other.example.com", "", 421, 421},
	{"program, host that ends the same", "evilchat.example.com", "", 421, 421},
	{"program, host that begins the same", "chat.example.com.evil.net", "", 421, 421},
	{"program, host with a dot at the end", "chat.example.com.", "", 421, 421},
	{"program, localhost", "localhost", "", 101, 101},
	{"program, localhost with port", "localhost:9000", "", 101, 101},
	{"program, loopback address", "127.0.0.1:9000", "", 101, 101},
	{"program, another loopback address", "127.9.8.7", "", 101, 101},
	{"program, loopback address of IPv6", "[::1]:9000", "", 101, 101},
	{"program, mapped loopback address", "[::ffff:127.0.0.1]", "", 101, 101},
	{"program, name that resolves to loopback", "localhost.evil.net", "", 421, 421},
	{"program, name that looks like loopback", "127.0.0.1.evil.net", "", 421, 421},
	{"program, address of the network", "192.0.2.1", "", 421, 421},
	{"program, address in decimal", "2130706433", "", 421, 421},
	{"rebound name, its own origin", "evil.net", "http://evil.net", 421, 421},

	{"page, listed origin", "chat.example.com", "https://app.example.com", 101, 421},
	{"page, listed origin in capitals", "chat.example.com", "HTTPS://APP.example.com", 101, 421},
	{"page, listed origin, other scheme", "chat.example.com", "http://app.example.com", 403, 421},
	{"page, listed origin, a port", "chat.example.com", "https://app.example.com:8443", 403, 421},
	{"page, listed origin with its port", "chat.example.com", "https://dev.example.com:3000", 101, 421},
	{"page, listed origin without its port", "chat.example.com", "https://dev.example.com", 403, 421},
	{"page, origin that ends the same", "chat.example.com", "https://evilapp.example.com", 403, 421},
	{"page, origin that begins the same", "chat.example.com", "https://app.example.com.evil.net", 403, 421},
	{"page, origin with user part", "chat.example.com", "https://app.example.com@evil.net", 403, 421},
	{"page, the host's own origin", "chat.example.com", "https://chat.example.com", 403, 421},
	{"page, null", "localhost", "null", 403, 403},
	{"page, empty origin", "localhost", " ", 403, 403},
	{"page, file", "localhost", "file://", 403, 403},
	{"page, extension", "localhost", "chrome-extension://abcdef", 403, 403},
	{"page, foreign", "localhost", "https://evil.net", 403, 403},
	{"page, localhost, another port", "localhost:9000", "http://localhost:3000", 101, 403},
	{"page, loopback address, another port", "localhost:9000", "http://127.0.0.1:8080", 101, 403},
	{"page, loopback address of IPv6, another port", "localhost:9000", "http://[::1]:8080", 101, 403},
	{"page, another loopback address, the same port", "localhost:9000", "http://127.0.0.1:9000", 101, 403},
	{"page, the gateway's own", "localhost:9000", "http://localhost:9000", 101, 101},
	{"page, the gateway's own by its address", "127.0.0.1:9000", "http://127.0.0.1:9000", 101, 101},
	{"page, the gateway's own by its IPv6 address", "[::1]:9000", "http://[::1]:9000", 101, 101},
	{"page, name that looks like loopback", "localhost", "http://localhost.evil.net", 403, 403},
	{"page, loopback with a path", "localhost", "http://localhost/x", 403, 403},
	{"page, loopback, foreign scheme", "localhost", "ftp://localhost", 403, 403},
	{"page, loopback with user part", "localhost", "http://a@localhost", 403, 403},
}

func TestOriginsAndHosts(t *testing.T) {
	require.GreaterOrEqual(t, len(pages), 40)
	listed := start(t, authenticated(key("k", "default")), func(c *gateway.Config, _ *gateway.Deps) {
		c.AllowedHosts = []string{"chat.example.com", "wss.example.com:8443"}
		c.AllowedOrigins = []string{"https://app.example.com", "https://dev.example.com:3000"}
	})
	loopback := start(t)
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			for r, want := range map[*rig]int{listed: p.listed, loopback: p.loopback} {
				header := []string{"Host", p.host, "Authorization", "Bearer k"}
				if p.origin != "" {
					header = append(header, "Origin", p.origin)
				}
				c, status, body := r.handshake("", header...)
				require.Equal(t, want, status, body)
				if want != http.StatusSwitchingProtocols {
					require.Contains(t, c.header.Get("Content-Type"), "application/problem+json")
				}
				_ = c.Conn.Close()
			}
		})
	}
	_, status, _ := loopback.handshake("", "Origin", "http://localhost", "Origin", "https://evil.net")
	require.Equal(t, http.StatusForbidden, status, "two origins")
}

// Without lists, a gateway that asks for credentials answers under every name: a
// page of a rebound name has none to show.
func TestAnyHostWithCredentials(t *testing.T) {
	r := start(t, authenticated(key("k", "default")))
	c, status, body := r.handshake("", "Host", "whatever.example.com", "X-API-Key", "k")
	require.Equal(t, http.StatusSwitchingProtocols, status, body)
	_ = c.Conn.Close()
}

func TestInvalidNames(t *testing.T) {
	for _, c := range []gateway.Config{
		{AllowedOrigins: []string{"app.example.com"}},
		{AllowedOrigins: []string{"https://app.example.com/"}},
		{AllowedOrigins: []string{"*"}},
		{AllowedOrigins: []string{"https://*.example.com/x"}},
		{AllowedOrigins: []string{"file:///home/me"}},
		{AllowedOrigins: []string{"nil"}},
		{AllowedHosts: []string{""}},
		{AllowedHosts: []string{"*"}},
		{AllowedHosts: []string{"https://chat.example.com"}},
	} {
		r := prepare(t, sharedBus(t))
		c.Addr = "127.0.0.1:0"
		_, err := gateway.New(c, r.deps())
		require.ErrorContains(t, err, "gateway.allowed_", "%+v", c)
	}
}
