package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// The well-known paths of metadata.
const (
	ofResource = "/.well-known/oauth-protected-resource"
	ofServer   = "/.well-known/oauth-authorization-server"
	ofOpenID   = "/.well-known/openid-configuration"
)

// resource is what a server says of itself (RFC 9728).
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// issuer is what an authorization server says of itself (RFC 8414).
type issuer struct {
	Issuer  string   `json:"issuer"`
	Token   string   `json:"token_endpoint"`
	Methods []string `json:"token_endpoint_auth_methods_supported"`
}

// discover finds out where tokens for the server come from, after a refusal with these challenges.
func (c *Client) discover(ctx context.Context, challenges []string) (*source, error) {
	address, scopes := challenged(challenges)
	r, err := c.resource(ctx, address)
	if err != nil {
		return nil, err
	}
	name, at := canonical(c.server), &url.URL{Scheme: c.server.Scheme, Host: c.server.Host}
	if r != nil {
		if r.Resource != "" {
			name = r.Resource
		}
		if at, err = c.authority(r.Servers, at); err != nil {
			return nil, err
		}
	}
	i, err := c.issuer(ctx, at)
	switch {
	case err != nil:
		return nil, err
	case i == nil && r != nil:
		return nil, fmt.Errorf("the authorization server %s publishes no metadata; set oauth.token_url", at.Host)
	case i == nil: // as the version of 2025-03-26 wants it
		i = &issuer{Token: at.JoinPath("token").String()}
	}
	style, err := styleOf(i.Methods)
	if err != nil {
		return nil, err
	}
	switch {
	case len(c.cfg.Scopes) > 0:
		scopes = c.cfg.Scopes
	case len(scopes) == 0 && r != nil:
		scopes = r.Scopes
	}
	return &source{c.config(i.Token, style, name, scopes), true}, nil
}

// challenged returns the address of metadata and the scopes that a refusal names.
func challenged(challenges []string) (address string, scopes []string) {
	for _, line := range challenges {
		all, err := oauthex.ParseWWWAuthenticate([]string{line})
		if err != nil {
			continue // it may be meant for others
		}
		for _, ch := range all {
			if ch.Scheme == "bearer" {
				address = ch.Params["resource_metadata"]
				return address, strings.Fields(ch.Params["scope"])
			}
		}
	}
	return "", nil
}

// resource returns the server's metadata; nil if it has none.
func (c *Client) resource(ctx context.Context, named string) (*resource, error) {
	var places []string
	if named != "" {
		places = append(places, named)
	}
	root := &url.URL{Scheme: c.server.Scheme, Host: c.server.Host}
	if path := strings.TrimSuffix(c.server.Path, "/"); path != "" {
		places = append(places, root.String()+ofResource+path)
	}
	places = append(places, root.String()+ofResource)
	var wrong error
	for _, place := range slices.Compact(places) {
		var r resource
		found, err := c.web.read(ctx, place, &r)
		switch {
		case err != nil:
			wrong = errors.Join(wrong, err)
		case !found:
		case r.Resource != "" && !c.covers(r.Resource):
			wrong = errors.Join(wrong, fmt.Errorf("the metadata at %s belongs to another resource, %s", hostOf(place), bound.Shorten(r.Resource, bound.Title)))
		default:
			return &r, nil
		}
	}
	return nil, wrong
}

// covers reports whether the resource is the server, or a path above it: many servers name their origin.
func (c *Client) covers(name string) bool {
	u, err := url.Parse(name)
	if err != nil || !strings.EqualFold(u.Scheme, c.server.Scheme) || !strings.EqualFold(u.Hostname(), c.server.Hostname()) || portOf(u) != portOf(c.server) {
		return false
	}
	above := strings.TrimSuffix(u.Path, "/")
	return above == strings.TrimSuffix(c.server.Path, "/") || strings.HasPrefix(c.server.Path, above+"/")
}

// authority returns the first authorization server that may be asked; without any it is the given one.
func (c *Client) authority(servers []string, otherwise *url.URL) (*url.URL, error) {
	if len(servers) == 0 {
		return otherwise, nil
	}
	var wrong error
	for _, s := range servers {
		u, err := c.web.allowed(s)
		if err == nil {
			return u, nil
		}
		wrong = errors.Join(wrong, err)
	}
	return nil, wrong
}

// issuer returns the metadata of an authorization server; nil if it has none.
func (c *Client) issuer(ctx context.Context, at *url.URL) (*issuer, error) {
	root, path := (&url.URL{Scheme: at.Scheme, Host: at.Host}).String(), strings.TrimSuffix(at.Path, "/")
	places := []string{root + ofServer + path, root + ofOpenID + path}
	if path != "" {
		places = append(places, root+path+ofOpenID, root+path+ofServer, root+ofServer)
	}
	var wrong error
	for _, place := range places {
		var i issuer
		found, err := c.web.read(ctx, place, &i)
		switch {
		case err != nil:
			wrong = errors.Join(wrong, err)
			continue
		case !found || i.Token == "":
			continue
		}
		if u, err := url.Parse(i.Issuer); i.Issuer != "" && (err != nil || u.Host != at.Host || u.Scheme != at.Scheme) {
			return nil, fmt.Errorf("the metadata of the authorization server %s belongs to another one, %s", at.Host, bound.Shorten(i.Issuer, bound.Title))
		}
		if _, err := c.web.allowed(i.Token); err != nil {
			return nil, err
		}
		return &i, nil
	}
	return nil, wrong
}

// styleOf returns how the client shows its secret, by the methods of an authorization server.
func styleOf(methods []string) (oauth2.AuthStyle, error) {
	switch {
	case len(methods) == 0:
		return oauth2.AuthStyleAutoDetect, nil
	case slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader, nil
	case slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams, nil
	}
	return 0, fmt.Errorf("the authorization server does not accept a secret, only %s", bound.Shorten(strings.Join(methods, ", "), bound.Title))
}
