package config

import (
	"net"
	"net/netip"
	"net/url"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// cells checks the settings of an installation with several cells, and fills in the address of the gateway.
func (p *problems) cells(c *Config, use For) {
	s := &c.Cells
	if s.Name == "" {
		return
	}
	for path, name := range map[string]string{"cells.name": s.Name, "cells.default": s.Default} {
		if _, err := id.ParseName(name); err != nil {
			p.add(path, "%q is not a cell name: use letters, digits, _ and -", name)
		}
	}
	if s.Control == "" {
		p.add("cells.control", "specify the NATS server of the control cluster")
	}
	if !use.Has(RoleGateway) {
		return
	}
	if c.Gateway.ProxyProtocol {
		p.add("gateway.proxy_protocol", "cannot be used with cells, because gateways of other cells do not send it: let the proxy send a header with the client's address")
	}
	if s.Address == "" {
		s.Address = addressOf(c.Addr)
	}
	if u, err := url.Parse(s.Address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" {
		p.add("cells.address", "%q is not an address of this gateway such as http://10.0.1.7:9000", s.Address)
	}
}

// addressOf returns the URL of a listener, empty if its address does not name a host and a port.
func addressOf(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip, ipErr := netip.ParseAddr(host); err != nil || host == "" || port == "0" || ipErr == nil && ip.IsUnspecified() {
		return ""
	}
	return "http://" + net.JoinHostPort(host, port)
}
