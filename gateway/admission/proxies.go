package admission

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Headers in which a proxy says for whom it connects. Only one of them counts: proxies set one
// and pass the other on as the client sent it.
const (
	HeaderForwardedFor = "X-Forwarded-For"
	HeaderForwarded    = "Forwarded"
)

// Proxies are the proxies whose word on the address of a client counts.
type Proxies struct {
	trusted []netip.Prefix
	header  string
}

// NewProxies returns the proxies of the networks, which are CIDRs or addresses. Their header is
// HeaderForwardedFor by default.
func NewProxies(networks []string, header string) (*Proxies, error) {
	p := &Proxies{header: http.CanonicalHeaderKey(header)}
	switch p.header {
	case "":
		p.header = HeaderForwardedFor
	case HeaderForwardedFor, HeaderForwarded:
	default:
		return nil, fmt.Errorf("gateway.forwarded_header: %q is neither %s nor %s", header, HeaderForwardedFor, HeaderForwarded)
	}
	for _, text := range networks {
		network, err := parseNetwork(text)
		if err != nil {
			return nil, fmt.Errorf("gateway.trusted_proxies: %q is not a network such as 10.0.0.0/8", text)
		}
		p.trusted = append(p.trusted, network.Masked())
	}
	return p, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network, nil
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return ip.Prefix(ip.BitLen())
}

// Any reports whether any proxy is trusted.
func (p *Proxies) Any() bool { return len(p.trusted) > 0 }

// Trusts reports whether an address belongs to a trusted proxy.
func (p *Proxies) Trusts(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(p.trusted, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// Client returns the address of the client of a request that came from the peer remote
// ("192.0.2.1:4711"). Without a trusted proxy it is remote. The last address of the header that
// is not a trusted proxy's counts, because everything before it is the word of a stranger. A
// trusted proxy that names no address is a fault.
func (p *Proxies) Client(remote string, h http.Header) (string, error) {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil || !p.Trusts(peer.Addr()) {
		return remote, nil
	}
	hops := hopsOf(h.Values(p.header))
	client := peer.Addr()
	for _, hop := range slices.Backward(hops) {
		if client, err = p.parse(hop); err != nil {
			return "", fault.Newf(fault.InvalidField, "The proxy in front of this gateway sends a header %s without the client's address. Correct the proxy's configuration.", p.header).At(p.header).Wrap(err)
		}
		if !p.Trusts(client) {
			break
		}
	}
	if len(hops) == 0 {
		return remote, nil
	}
	return netip.AddrPortFrom(client, 0).String(), nil
}

// hopsOf returns the elements of a header, which may come several times.
func hopsOf(values []string) (hops []string) {
	for _, v := range values {
		hops = append(hops, split(v, ',')...)
	}
	return hops
}

// split splits a text at a separator outside of quotes. A text that ends within quotes stays whole, so that no client can
// quote what a proxy appends.
func split(text string, by byte) (parts []string) {
	if strings.Count(text, `"`)%2 != 0 {
		return []string{text}
	}
	start, quoted := 0, false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == by && !quoted:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// parse returns the address of one element.
func (p *Proxies) parse(hop string) (netip.Addr, error) {
	text := strings.TrimSpace(hop)
	if p.header == HeaderForwarded {
		text = forwardedFor(text)
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone(""), nil
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s: %w", p.header, err)
	}
	return ip.Unmap().WithZone(""), nil
}

// forwardedFor returns the parameter "for" of an element of Forwarded (RFC 7239), empty without it.
func forwardedFor(hop string) string {
	if strings.Count(hop, `"`)%2 != 0 {
		return ""
	}
	for _, pair := range split(hop, ';') {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}
