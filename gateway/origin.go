package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// originAllowed keeps other people's pages out. A request without Origin does not
// come from a browser's page.
func (s *Server) originAllowed(origins []string) bool {
	switch len(origins) {
	case 0:
		return true
	case 1:
	default:
		return false
	}
	if slices.ContainsFunc(s.cfg.AllowedOrigins, func(o string) bool { return strings.EqualFold(o, origins[0]) }) {
		return true
	}
	u, err := parseOrigin(origins[0])
	return err == nil && s.loopback && loopbackName(u.Host)
}

// parseOrigin parses scheme://host[:port] and nothing else.
func parseOrigin(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.String() != u.Scheme+"://"+u.Host {
		return nil, errors.New("it has to be of the form https://app.example.com")
	}
	return u, nil
}

// hostAllowed refuses names under which this gateway is not known: a rebound DNS
// name would otherwise make a stranger's page look like our own. Where credentials
// are asked for, such a page has none to show.
func (s *Server) hostAllowed(host string) bool {
	switch {
	case s.loopback && loopbackName(host), s.listed(host):
		return true
	case len(s.cfg.AllowedHosts) == 0:
		return !s.anonymous
	}
	return false
}

// listed reports whether the configuration names the host, with this port or with
// none.
func (s *Server) listed(host string) bool {
	return slices.ContainsFunc(s.cfg.AllowedHosts, func(allowed string) bool {
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

// checkNames returns an error that names the option with a name which no request
// can have.
func (c Config) checkNames() error {
	for _, o := range c.AllowedOrigins {
		if _, err := parseOrigin(o); err != nil {
			return fmt.Errorf("gateway.allowed_origins: %q: %w", o, err)
		}
	}
	for _, h := range c.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/*@ ") {
			return fmt.Errorf("gateway.allowed_hosts: %q is neither a host nor host:port", h)
		}
	}
	return nil
}
