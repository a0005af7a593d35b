package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// accept returns the handler that opens sockets of a dialect.
func (s *Server) accept(d dialect.Dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := s.admit(r, d)
		if err != nil {
			s.problem(w, fault.From(err, newID()))
			return
		}
		c.sock, err = s.hub.Accept(w, r, c.subprotocols)
		if err != nil { // the answer is written already
			s.dep.Logger.Debug().Err(err).Msg("a handshake failed")
			return
		}
		c.sock.Bind(c)
		if !s.add(c) {
			c.sock.Abort()
			return
		}
		go c.run() // the handler returns, which frees its request and stack
	}
}

// admit decides who may open a socket. The order is from cheap to dear.
func (s *Server) admit(r *http.Request, d dialect.Dialect) (*conn, error) {
	switch {
	case s.draining.Load():
		return nil, fault.New(fault.Draining)
	case !s.originAllowed(r.Header.Values("Origin"), r.Host):
		return nil, fault.New(fault.OriginRefused)
	case s.connections() >= s.cfg.MaxConnections:
		return nil, fault.New(fault.Overloaded)
	}
	query := r.URL.Query()
	codec, err := d.Bind(query)
	if err != nil {
		return nil, err
	}
	c := newConn(s, d, codec, query)
	token, subprotocol, given := auth.TokenFromRequest(r)
	if subprotocol != "" {
		c.subprotocols = []string{subprotocol}
	}
	if s.anonymous || given {
		p, err := s.dep.Auth.Authenticate(r.Context(), token)
		if err != nil {
			return nil, err
		}
		c.principal, c.known = p, true
	}
	return c, nil
}

// originAllowed keeps other people's pages out. A request without Origin does not
// come from a browser's page.
func (s *Server) originAllowed(origins []string, host string) bool {
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	if slices.Contains(s.cfg.AllowedOrigins, origins[0]) {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil {
		return false
	}
	if auth.RequireLoopback(s.cfg.Addr) == nil && loopbackName(u.Host) {
		return true
	}
	// A page that an allowed host has served itself; the host was checked before.
	return len(s.cfg.AllowedHosts) > 0 && strings.EqualFold(u.Host, host) && s.hostAllowed(host)
}

// hostAllowed refuses names under which this gateway is not known: a rebound DNS
// name would otherwise make a stranger's page look like our own.
func (s *Server) hostAllowed(host string) bool {
	if auth.RequireLoopback(s.cfg.Addr) == nil && loopbackName(host) {
		return true
	}
	if len(s.cfg.AllowedHosts) == 0 {
		return !s.anonymous
	}
	for _, allowed := range s.cfg.AllowedHosts {
		if strings.EqualFold(allowed, host) || strings.EqualFold(allowed, bare(host)) {
			return true
		}
	}
	return false
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
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
