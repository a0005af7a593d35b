package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// The WebSocket subprotocols. A browser cannot set headers on a WebSocket, so it offers two subprotocols: the spoken
// one, and one that carries the token.
const (
	Subprotocol   = "waggle"
	carrierPrefix = "waggle.token."
)

// TokenFromRequest returns the token of a request: Authorization: Bearer, else X-API-Key, else a
// Sec-WebSocket-Protocol of the form waggle.token.<base64url without padding>, else the password of Authorization: Basic.
// ok is false if the request has none. A credential that cannot be read (two of a kind, bad base64) is returned as the
// empty token with ok true: no Authenticator of New accepts it.
//
// Basic is how WebSocket libraries send the password of ws://user:key@host. Some send it as it stands in the address, so
// percent-encoding is undone. It does not count in requests of web pages: browsers add it by themselves, also for a page
// that does not know the password.
//
// subprotocol is "waggle" if the client offers it, and then the handshake must select it; the protocol with the token
// must never be echoed.
func TokenFromRequest(r *http.Request) (token, subprotocol string, ok bool) {
	offered := offeredProtocols(r.Header)
	for _, p := range offered {
		if p == Subprotocol {
			subprotocol = p
		}
	}
	if t, ok := bearer(r.Header); ok {
		return t, subprotocol, true
	}
	if t, ok := single(r.Header.Values("X-Api-Key")); ok {
		return t, subprotocol, true
	}
	var carried []string
	for _, p := range offered {
		if rest, found := strings.CutPrefix(p, carrierPrefix); found {
			carried = append(carried, rest)
		}
	}
	t, ok := single(carried)
	if !ok {
		t, ok = basic(r)
		return t, subprotocol, ok
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(t)
	if err != nil {
		return "", subprotocol, true
	}
	return string(raw), subprotocol, true
}

// bearer returns the bearer token. It ignores other schemes, which may belong to a proxy in front of the gateway.
func bearer(h http.Header) (string, bool) { return single(authorizations(h, "Bearer")) }

// basic returns the password of basic authentication.
func basic(r *http.Request) (string, bool) {
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return "", false
	}
	encoded, ok := single(authorizations(r.Header, "Basic"))
	if !ok {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", true
	}
	_, password, _ := strings.Cut(string(raw), ":")
	if plain, err := url.PathUnescape(password); err == nil {
		return plain, true
	}
	return password, true
}

// authorizations returns the credentials of a scheme.
func authorizations(h http.Header, want string) (found []string) {
	for _, v := range h.Values("Authorization") {
		scheme, rest, _ := strings.Cut(v, " ")
		if strings.EqualFold(scheme, want) {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

// single returns the only value. It refuses several values.
func single(values []string) (string, bool) {
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	}
	return "", true
}

func offeredProtocols(h http.Header) []string {
	var out []string
	for _, v := range h.Values("Sec-Websocket-Protocol") {
		for p := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(p))
		}
	}
	return out
}

// HashKey returns the SHA-256 of an API key in lower-case hex, as the configuration holds it. A plain hash suffices
// because keys are random and long, unlike passwords.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// RequireLoopback returns an error that names the options unless addr (host:port) is a loopback address, which only
// this machine can reach. It does not resolve names: only "localhost" counts.
func RequireLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listening address %q: %w", addr, err)
	}
	if strings.EqualFold(host, "localhost") {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%q can be reached from other machines without authentication: "+
		"configure auth.api_keys or auth.jwt, or listen on 127.0.0.1", addr)
}
