package admission

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Names are the names under which a gateway is reached and the pages that may reach it.
type Names struct {
	Origins   []string // of pages, exact: "https://app.example.com"
	Hosts     []string // "chat.example.com" for any port, "chat.example.com:8443" for this one
	Loopback  bool     // only this machine can connect
	Anonymous bool     // clients show no credentials
	Token     string   // admits pages of any origin where clients show no credentials; empty = none does
}

// Origins of pages that browsers read from a disk, and of pages without an origin, as sandboxed frames of any site are.
const (
	originFile = "file://"
	originNull = "null"
)

// checkOrigin returns why no configuration can list an origin.
func checkOrigin(s string) error {
	if strings.EqualFold(s, originFile) || strings.EqualFold(s, originNull) {
		return nil
	}
	if len(s) > maxOrigin {
		return errors.New("it is too long")
	}
	_, err := parseOrigin(s)
	return err
}

// maxOrigin is longer than a scheme, a name of DNS and a port.
const maxOrigin = 300

// parseOrigin parses scheme://host[:port] and nothing else.
func parseOrigin(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.String() != u.Scheme+"://"+u.Host {
		return nil, errors.New("it must be of the form https://app.example.com, or null or file:// for pages that are opened from a disk")
	}
	return u, nil
}

// Host reports whether the gateway is known under the name. A rebound DNS name would
// otherwise make the page of another site look like our own; without a list, a gateway
// that asks for credentials accepts all names, because such a page has none to show.
func (n Names) Host(host string) bool {
	switch {
	case n.Loopback && loopbackName(host), n.listed(host):
		return true
	case len(n.Hosts) == 0:
		return !n.Anonymous
	}
	return false
}

// listed reports whether Hosts has the host, with this port or with none.
func (n Names) listed(host string) bool {
	return slices.ContainsFunc(n.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, bare(host))
	})
}

// loopbackName reports whether the host (with or without port) can only be this
// machine.
func loopbackName(host string) bool {
	name := bare(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// bare returns the host without its port and brackets.
func bare(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	if h, ok := strings.CutPrefix(host, "["); ok {
		return strings.TrimSuffix(h, "]")
	}
	return host
}

// Check returns an error that names the option with a name which no request can have.
func (n Names) Check() error {
	for _, o := range n.Origins {
		if err := checkOrigin(o); err != nil {
			return fmt.Errorf("gateway.allowed_origins: %q: %w", o, err)
		}
	}
	for _, h := range n.Hosts {
		if h == "" || strings.ContainsAny(h, "/*@ ") {
			return fmt.Errorf("gateway.allowed_hosts: %q is neither a host nor host:port", h)
		}
	}
	return nil
}
