package oauth

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

const (
	// webTimeout bounds a discovery, and a request for a token.
	webTimeout = 10 * time.Second
	// maxMetadata bounds a document of metadata.
	maxMetadata = 256 << 10
	// maxRedirects bounds the redirects of a request for metadata.
	maxRedirects = 3
)

// web is the part of the network in which metadata may lie: addresses of the server's choice.
type web struct {
	server *url.URL
	tls    *tls.Config // of tests; nil = the system's authorities
}

func newWeb(server *url.URL) *web { return &web{server: server} }

// allowed returns the address, unless it is one that a server may not choose.
func (w *web) allowed(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return nil, fmt.Errorf("the server's metadata names %q, which is not an address", bound.Shorten(address, bound.Title))
	case u.Scheme == "https" || onLoopback(u) && onLoopback(w.server):
		return u, nil
	}
	return nil, fmt.Errorf("the server's metadata names %s://%s, which is not https", u.Scheme, bound.Shorten(u.Host, bound.Title))
}

// onLoopback reports whether the address is plain HTTP to this machine.
func onLoopback(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || err == nil && ip.IsLoopback()
}

// read reads a document of metadata. It reports whether it has found one: most servers have only some of the documents, and
// answer for the others with any error or page.
func (w *web) read(ctx context.Context, address string, into any) (found bool, _ error) {
	u, err := w.allowed(address)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := w.client(address, true, true).Do(req)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		return false, fmt.Errorf("the metadata at %s: %w", u.Host, err)
	}
	defer func() { _ = res.Body.Close() }()
	switch {
	case res.StatusCode == http.StatusBadGateway, res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusOK:
		return false, nil
	case res.StatusCode != http.StatusOK:
		return false, fmt.Errorf("the metadata at %s: the server responded %d %s", u.Host, res.StatusCode, http.StatusText(res.StatusCode))
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata+1))
	switch {
	case err != nil:
		return false, fmt.Errorf("the metadata at %s: %w", u.Host, err)
	case len(b) > maxMetadata:
		return false, fmt.Errorf("the metadata at %s is larger than %d bytes", u.Host, maxMetadata)
	}
	return json.Unmarshal(b, into) == nil, nil
}

// client returns a client for one request to the address. For an address of the server's choice (found) it connects only to
// where the server itself could be. Redirects are followed within the origin, if at all: nothing secret goes elsewhere.
func (w *web) client(address string, found, redirects bool) *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: w.tls, TLSHandshakeTimeout: webTimeout}
	u, err := url.Parse(address)
	if err == nil && found && direct(u) {
		d := &net.Dialer{Timeout: webTimeout, ControlContext: func(ctx context.Context, _, at string, _ syscall.RawConn) error { return w.reachable(ctx, at) }}
		t.DialContext = d.DialContext
	}
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if !redirects || len(via) > maxRedirects || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// direct reports whether requests to the address go there without a proxy, which connects in this machine's place.
func direct(u *url.URL) bool {
	p, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	return err == nil && p == nil
}

// Networks, from the widest to the narrowest.
const (
	public = iota
	private
	loopback
	nowhere
)

// networkOf returns the network of an address.
func networkOf(ip netip.Addr) int {
	switch ip = ip.Unmap(); {
	case ip.IsLoopback():
		return loopback
	case ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.IsUnspecified(), !ip.IsValid():
		return nowhere // the metadata of clouds, and addresses without a host
	case ip.IsPrivate(), shared.Contains(ip):
		return private
	}
	return public
}

// shared are the addresses of providers' own networks (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// reachable returns an error for an address in a network that is narrower than the server's: the server could make this
// process ask what it cannot ask itself.
func (w *web) reachable(ctx context.Context, at string) error {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	if to := networkOf(ip); to > w.network(ctx) {
		return fmt.Errorf("%s lies in a network that the server is not in", host)
	}
	return nil
}

// network returns the network in which the server is: the widest, if its name stands for several addresses. The owner of
// the name could add narrower ones.
func (w *web) network(ctx context.Context) int {
	var ips []netip.Addr
	if ip, err := netip.ParseAddr(w.server.Hostname()); err == nil {
		ips = append(ips, ip)
	} else {
		ips, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", w.server.Hostname()) // without an address it is public
	}
	is := nowhere
	for _, ip := range ips {
		is = min(is, networkOf(ip))
	}
	if is == nowhere {
		return public
	}
	return is
}

// portOf returns the port of an address.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)])
}
