package api

// ConsoleInfo tells a page of the console, before it has credentials, how people sign in and what this installation lets the
// page do.
type ConsoleInfo struct {
	OIDC *OIDCLogin `json:"oidc,omitempty"` // absent: with an API key or a token only
	Plug string     `json:"plug,omitempty"` // with "waggle demo": a POST request there kills the server, which starts again
}

// OIDCLogin is the sign-in with OpenID Connect: the code flow with PKCE.
type OIDCLogin struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"`
	Token    string   `json:"token"` // that the page sends to the gateway: access, id
}
