package service_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// unescaped undoes what Basic authentication of OAuth does to a name.
func unescaped(s string, basic bool) string {
	if !basic {
		return s
	}
	out, err := url.QueryUnescape(s)
	if err != nil {
		return ""
	}
	return out
}

func (a *authServer) config() mcpservers.Config {
	return mcpservers.Config{Name: "safe", URL: a.url + a.path, OAuth: &mcpservers.OAuth{ClientID: "waggle", Secret: canarySecret}}
}

// protectedRig starts a service with the server, and a log that must not hold a secret in the end.
func protectedRig(t *testing.T, cfg mcpservers.Config) (*rig, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	svc, err := service.New(unasked(service.Config{Servers: []mcpservers.Config{cfg}}), service.Deps{Logger: zerolog.New(log)})
	require.NoError(t, err)
	t.Cleanup(func() {
		svc.Stop()
		require.NotContains(t, log.String(), "canary")
	})
	require.NoError(t, svc.Start(t.Context()))
	return &rig{Caller: svc, svc: svc}, log
}

const called = "done\n(a content block of type widget was left out)"

// Tokens are found and fetched as the servers of other makers want it.
func TestTokensAreFetched(t *testing.T) {
	const token = "/as/token client_credentials scope=read write resource=/mcp"
	for name, c := range map[string]struct {
		change func(*authServer, *mcpservers.Config)
		asked  []string
	}{
		"by all documents": {func(*authServer, *mcpservers.Config) {}, []string{token}},
		"the secret in the body": {func(a *authServer, _ *mcpservers.Config) {
			a.methods = "post"
			a.docs["/.well-known/oauth-authorization-server/as"] = `{"issuer":"%s/as","token_endpoint":"%s/as/token","token_endpoint_auth_methods_supported":["private_key_jwt","client_secret_post"]}`
		}, []string{token}},
		"no word of the secret's place": {func(a *authServer, _ *mcpservers.Config) {
			a.methods = "post"
			a.docs["/.well-known/oauth-authorization-server/as"] = `{"issuer":"%s/as","token_endpoint":"%s/as/token"}`
		}, []string{token, token}}, // the second form after the first
		"no resource_metadata in the challenge": {func(a *authServer, _ *mcpservers.Config) { a.bare = true }, []string{token}},
		"metadata at the root": {func(a *authServer, _ *mcpservers.Config) {
			a.bare = true
			a.docs["/.well-known/oauth-protected-resource"] = `{"resource":"%s","authorization_servers":["%s/as"]}`
			delete(a.docs, "/.well-known/oauth-protected-resource/mcp")
		}, []string{"/as/token client_credentials scope= resource="}},
		"metadata behind a guard": {func(a *authServer, _ *mcpservers.Config) {
			a.bare, a.missing = true, 403
			a.docs["/.well-known/oauth-protected-resource"] = `{"resource":"%s/","authorization_servers":["%s/as"]}`
			delete(a.docs, "/.well-known/oauth-protected-resource/mcp")
		}, []string{"/as/token client_credentials scope= resource=/"}},
		"pages in place of metadata": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-authorization-server/as"] = `<html>`
			a.docs["/.well-known/openid-configuration/as"] = `<html>`
			a.docs["/as/.well-known/openid-configuration"] = `{"issuer":"%s/as","token_endpoint":"%s/as/token"}`
		}, []string{token}},
		"metadata at the root of the authorization server": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-authorization-server"] = `{"issuer":"%s","token_endpoint":"%s/as/token"}`
			delete(a.docs, "/.well-known/oauth-authorization-server/as")
		}, []string{token}},
		"OpenID only": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"%s/mcp","authorization_servers":["%s/"]}`
			a.docs["/.well-known/openid-configuration"] = `{"issuer":"%s/","token_endpoint":"%s/other/token"}`
		}, []string{"/other/token client_credentials scope= resource=/mcp"}},
		"no metadata of the resource": {func(a *authServer, _ *mcpservers.Config) {
			a.bare = true
			delete(a.docs, "/.well-known/oauth-protected-resource/mcp")
			a.docs["/.well-known/oauth-authorization-server"] = `{"issuer":"%s","token_endpoint":"%s/as/token"}`
		}, []string{"/as/token client_credentials scope= resource=/mcp"}},
		"no metadata at all": {func(a *authServer, _ *mcpservers.Config) { a.docs, a.bare = nil, true }, []string{"/token client_credentials scope= resource=/mcp"}},
		"a redirect within the host": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-protected-resource/moved"] = a.docs["/.well-known/oauth-protected-resource/mcp"]
			a.docs["/.well-known/oauth-protected-resource/mcp"] = a.url + "/.well-known/oauth-protected-resource/moved"
		}, []string{token}},
		"scopes of the challenge": {func(a *authServer, _ *mcpservers.Config) { a.scope = "files:read" }, []string{"/as/token client_credentials scope=files:read resource=/mcp"}},
		"scopes of the operator": {func(a *authServer, cfg *mcpservers.Config) {
			a.scope, cfg.OAuth.Scopes = "files:read", []string{"a", "b"}
		}, []string{
			"/as/token client_credentials scope=a b resource=/mcp",
		}},
		"an address of the operator": {func(a *authServer, cfg *mcpservers.Config) { a.docs, cfg.OAuth.TokenURL = nil, a.url+"/mine/token" }, []string{
			"/mine/token client_credentials scope= resource=/mcp",
		}},
		"a file with the secret": {func(a *authServer, cfg *mcpservers.Config) {
			cfg.OAuth.Secret, cfg.OAuth.File = "", filepath.Join(a.t.TempDir(), "secret")
			require.NoError(a.t, os.WriteFile(cfg.OAuth.File, []byte(canarySecret+"\n"), 0o600))
		}, []string{token}},
		"no end of tokens": {func(a *authServer, _ *mcpservers.Config) { a.lives = 0 }, []string{token}},
		"another case":     {func(a *authServer, _ *mcpservers.Config) { a.kind = "bearer" }, []string{token}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthServer(t)
			cfg := a.config()
			c.change(a, &cfg)
			r, _ := protectedRig(t, cfg)
			r.await(t, "safe_a")
			require.Equal(t, called, r.call(t, "safe_a", nil))
			a.mu.Lock()
			defer a.mu.Unlock()
			require.Equal(t, c.asked, a.asked)
			require.LessOrEqual(t, a.denied, 1)
		})
	}
}

// A token that was revoked is replaced once, within the call. After a restart of the service tokens are fetched anew, because
// none is stored.
func TestRevokedTokens(t *testing.T) {
	a := newAuthServer(t)
	r, log := protectedRig(t, a.config())
	r.await(t, "safe_a")
	require.Equal(t, called, r.call(t, "safe_a", nil))
	for range 2 {
		a.revoke()
		require.Eventually(t, func() bool { // right after a token was fetched no other is
			res, err := r.Call(t.Context(), newCall(t, "safe_a", nil))
			return err == nil && res.Text == called
		}, maxWait, tick)
	}
	require.Contains(t, log.String(), "tool server token fetched")
	before, _ := a.counts()
	r.svc.Stop()
	r, _ = protectedRig(t, a.config())
	r.await(t, "safe_a")
	require.Equal(t, called, r.call(t, "safe_a", nil))
	after, _ := a.counts()
	require.Equal(t, before+1, after)
}

// A token is replaced before its end, and calls do not meet its end.
func TestTokensAreRefreshed(t *testing.T) {
	a := newAuthServer(t)
	a.lives = 1
	r, _ := protectedRig(t, a.config())
	r.await(t, "safe_a")
	_, denied := a.counts()
	require.Eventually(t, func() bool {
		require.Equal(t, called, r.call(t, "safe_a", nil))
		asked, _ := a.counts()
		return asked > 2
	}, maxWait, tick)
	_, now := a.counts()
	require.Equal(t, denied, now)
}

// Every refusal has a reason that names what to do, in the description and in the log, without a secret.
func TestWhyThereIsNoToken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*authServer, *mcpservers.Config)
		want   string
	}{
		"a wrong secret": {func(_ *authServer, cfg *mcpservers.Config) { cfg.OAuth.Secret = "canary wrong" }, "it refuses the client; look at oauth.client_id and its secret"},
		"an error":       {func(a *authServer, _ *mcpservers.Config) { a.refuse = "unauthorized_client" }, "may not fetch tokens by client_credentials; allow that there (unauthorized_client: you sent [redacted])"},
		"another error":  {func(a *authServer, _ *mcpservers.Config) { a.refuse = "slow_down" }, "it answers 400 Bad Request (slow_down: you sent [redacted])"},
		"wrong scopes":   {func(a *authServer, _ *mcpservers.Config) { a.refuse = "invalid_scope" }, "it refuses the scopes; look at oauth.scopes"},
		"another kind":   {func(a *authServer, _ *mcpservers.Config) { a.kind = "DPoP" }, `tokens of type "DPoP"`},
		"keys only": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-authorization-server/as"] = `{"issuer":"%s/as","token_endpoint":"%s/as/token","token_endpoint_auth_methods_supported":["private_key_jwt"]}`
		}, "does not accept a secret, only private_key_jwt"},
		"another issuer": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-authorization-server/as"] = `{"issuer":"https://evil.example","token_endpoint":"%s/as/token"}`
		}, "belongs to another one, https://evil.example"},
		"another resource": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"%s/other","authorization_servers":["%s/as"]}`
		}, "belongs to another resource"},
		"no metadata of the issuer": {func(a *authServer, _ *mcpservers.Config) {
			delete(a.docs, "/.well-known/oauth-authorization-server/as")
		}, "publishes no metadata; set oauth.token_url"},
		"an issuer elsewhere in the clear": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-protected-resource/mcp"] = `{"resource":"%s/mcp","authorization_servers":["http://auth.example"]}`
		}, "http://auth.example, which is not https"},
		"an endpoint in the clear": {func(a *authServer, _ *mcpservers.Config) {
			a.docs["/.well-known/oauth-authorization-server/as"] = `{"issuer":"%s/as","token_endpoint":"http://10.0.0.1/token"}`
		}, "http://10.0.0.1, which is not https"},
		"a broken server": {func(a *authServer, _ *mcpservers.Config) { a.docs, a.missing = nil, 500 }, "the server responded 500"},
		"no file": {func(a *authServer, cfg *mcpservers.Config) {
			cfg.OAuth.Secret, cfg.OAuth.File = "", filepath.Join(a.t.TempDir(), "none")
		}, "oauth.client_secret_file: "},
		"a token of no use": {
			func(a *authServer, _ *mcpservers.Config) { a.deaf = true }, "it answers 401 Unauthorized: it rejects the token that oauth fetched by OAuth: the token [redacted] is not known; check",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthServer(t)
			cfg := a.config()
			c.change(a, &cfg)
			is, log := troubled(t, cfg)
			require.Contains(t, is.Trouble, c.want)
			require.NotContains(t, is.Trouble+log, "canary")
		})
	}
}

// Lists of servers hold no secret.
func TestTokensAreNotTold(t *testing.T) {
	a := newAuthServer(t)
	r, _ := protectedRig(t, a.config())
	r.await(t, "safe_a")
	all, err := r.svc.Servers(t.Context(), id.DefaultTenant, "")
	require.NoError(t, err)
	b, err := json.Marshal(all)
	require.NoError(t, err)
	require.NotContains(t, string(b), "canary")
}
