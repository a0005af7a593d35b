package config

import (
	"fmt"

	"github.com/waggle-dev/waggle/services/tools/mcp"
)

// Client returns the client with which tokens for a server are fetched; nil without OAuth.
func (o *ToolOAuth) Client() *mcp.OAuth {
	if o.ClientID == "" && o.ClientSecret == "" && o.ClientSecretFile == "" && o.TokenURL == "" && len(o.Scopes) == 0 {
		return nil
	}
	return &mcp.OAuth{ClientID: o.ClientID, Secret: o.ClientSecret.Reveal(), File: o.ClientSecretFile, Scopes: o.Scopes, TokenURL: o.TokenURL}
}

// oauth validates the client of a tool server.
func (p *problems) oauth(at string, s *ToolServer) {
	c := mcp.Config{URL: s.URL, Headers: Reveal(s.Headers), OAuth: s.OAuth.Client()}
	if c.OAuth == nil {
		return
	}
	if err := c.CheckOAuth(); err != nil {
		*p = append(*p, fmt.Errorf("%s.%w", at, err))
	}
}

// Reveal returns the secrets themselves.
func Reveal(secrets map[string]Secret) map[string]string {
	out := make(map[string]string, len(secrets))
	for name, v := range secrets {
		out[name] = v.Reveal()
	}
	return out
}
