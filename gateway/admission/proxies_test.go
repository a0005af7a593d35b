package admission_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/admission"
)

// TestClientAddresses: whatever a client writes into the headers, only what a trusted proxy has
// added counts.
func TestClientAddresses(t *testing.T) {
	const proxy, other = "10.1.2.3:40000", "203.0.113.9:40000"
	for _, c := range []struct {
		name, header, remote string
		values               []string
		want                 string // empty = refused
	}{
		{"no proxy, no header", "", other, nil, other},
		{"a stranger pretends to be a proxy", "", other, []string{"192.0.2.1"}, other},
		{"a proxy without a header", "", proxy, nil, proxy},
		{"one address", "", proxy, []string{"198.51.100.7"}, "198.51.100.7:0"},
		{"with a port", "", proxy, []string{"198.51.100.7:1234"}, "198.51.100.7:0"},
		{"the client has written the first", "", proxy, []string{"192.0.2.1, 198.51.100.7"}, "198.51.100.7:0"},
		{"in a header of its own", "", proxy, []string{"192.0.2.1", "198.51.100.7"}, "198.51.100.7:0"},
		{"nonsense before the address", "", proxy, []string{"nonsense, 198.51.100.7"}, "198.51.100.7:0"},
		{"two proxies", "", proxy, []string{"192.0.2.1, 198.51.100.7, 10.9.9.9"}, "198.51.100.7:0"},
		{"the client pretends to be a proxy behind a proxy", "", proxy, []string{"192.0.2.1, 10.9.9.9, 198.51.100.7"}, "198.51.100.7:0"},
		{"proxies alone", "", proxy, []string{"10.7.7.7, 10.8.8.8"}, "10.7.7.7:0"},
		{"IPv6", "", "[fd00::1]:1", []string{"2001:db8::1"}, "[2001:db8::1]:0"},
		{"IPv6 with a port", "", proxy, []string{"[2001:db8::1]:443"}, "[2001:db8::1]:0"},
		{"mapped", "", "[::ffff:10.1.2.3]:1", []string{"::ffff:198.51.100.7"}, "198.51.100.7:0"},
		{"nonsense", "", proxy, []string{"nonsense"}, ""},
		{"empty", "", proxy, []string{""}, ""},
		{"an empty element", "", proxy, []string{"198.51.100.7,"}, ""},
		{"nonsense of a second proxy", "", proxy, []string{"198.51.100.7, unknown, 10.9.9.9"}, ""},

		{"Forwarded", "forwarded", proxy, []string{`for=192.0.2.1;proto=https, For="198.51.100.7:99";by=10.1.2.3`}, "198.51.100.7:0"},
		{"Forwarded, IPv6", "forwarded", proxy, []string{`for="[2001:db8::1]:4711"`}, "[2001:db8::1]:0"},
		{"Forwarded, a comma in quotes", "forwarded", proxy, []string{`for=198.51.100.7;host="a, for=192.0.2.1"`}, "198.51.100.7:0"},
		{"Forwarded, a parameter in quotes", "forwarded", proxy, []string{`host="a;for=192.0.2.1";for=198.51.100.7`}, "198.51.100.7:0"},
		{"Forwarded, a quote swallows what the proxy adds", "forwarded", proxy, []string{`for=192.0.2.1;host=", for=198.51.100.7`}, ""},
		{"Forwarded, hidden", "forwarded", proxy, []string{"for=_secret"}, ""},
		{"Forwarded, unknown", "forwarded", proxy, []string{"for=unknown"}, ""},
		{"Forwarded, without for", "forwarded", proxy, []string{"proto=https"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := admission.NewProxies([]string{"10.0.0.0/8", "fd00::1"}, c.header)
			require.NoError(t, err)
			name, foreign := admission.HeaderForwardedFor, admission.HeaderForwarded
			if c.header != "" {
				name, foreign = foreign, name
			}
			h := http.Header{foreign: {"for=192.0.2.66", "192.0.2.66"}} // which the proxy passes on
			for _, v := range c.values {
				h.Add(name, v)
			}
			got, err := p.Client(c.remote, h)
			if c.want == "" {
				require.ErrorContains(t, err, name)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestInvalidProxies(t *testing.T) {
	for _, bad := range []string{"", "10.0.0.0/33", "proxy.example.com", "10.0.0.1:80"} {
		_, err := admission.NewProxies([]string{bad}, "")
		require.ErrorContains(t, err, "gateway.trusted_proxies")
	}
	_, err := admission.NewProxies(nil, "X-Real-IP")
	require.ErrorContains(t, err, "gateway.forwarded_header")
}
