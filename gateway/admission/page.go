package admission

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Page returns why a request of a web page is refused, or nil. Requests of other programs have
// neither of the headers that browsers add.
//
// Where clients show credentials, pages of the listed origins may come in, and those of this machine
// if only it can connect. Where they show none, a page of another port could do everything that
// its reader can: without a listed origin or the start token only the gateway's own pages may come in.
func (n Names) Page(r *http.Request) error {
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return fault.New(fault.OriginRefused)
	case len(origins) == 1 && n.page(r, origins[0]), len(origins) == 0 && (!n.Anonymous || !foreign(r)):
		return nil
	case !n.Anonymous:
		return fault.New(fault.OriginRefused)
	case n.shown(r):
		return nil
	}
	return fault.Newf(fault.OriginRefused, "Without authentication, only pages from this address may connect. Add the page's origin to gateway.allowed_origins, or send the start token, which the server shows when it starts.")
}

// page reports whether a page of the origin may come in without the start token.
func (n Names) page(r *http.Request, origin string) bool {
	if slices.ContainsFunc(n.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := parseOrigin(origin)
	switch {
	case err != nil:
		return false
	case n.Anonymous:
		return strings.EqualFold(u.Host, r.Host) // a name of the gateway: Host has been checked
	}
	return n.Loopback && loopbackName(u.Host)
}

// foreign reports whether a request without Origin comes from a page of another origin: an image, a
// script, a frame or a link. A typed address has the site "none".
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// shown reports whether the request has the start token.
func (n Names) shown(r *http.Request) bool {
	token, _, given := auth.TokenFromRequest(r)
	is, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(n.Token))
	return given && n.Token != "" && subtle.ConstantTimeCompare(is[:], want[:]) == 1
}

// Preflight reports whether a browser's question, if a page may send a request, is answered with
// yes: for pages that may come in, and for pages that want to send the start token, which
// questions never have.
func (n Names) Preflight(r *http.Request) bool {
	if n.Page(r) == nil {
		return true
	}
	if !n.Anonymous || n.Token == "" || len(r.Header.Values("Origin")) != 1 {
		return false
	}
	for _, list := range r.Header.Values("Access-Control-Request-Headers") {
		for name := range strings.SplitSeq(list, ",") {
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "authorization", "x-api-key":
				return true
			}
		}
	}
	return false
}

// Visit reports whether a person follows a link: the answer is shown in a tab of its own, and
// the page with the link cannot read it.
func Visit(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
