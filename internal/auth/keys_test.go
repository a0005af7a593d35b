package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of all tests.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func tenant(t require.TestingT, s string) id.Tenant {
	v, err := id.ParseTenant(s)
	require.NoError(t, err)
	return v
}

func twoKeys() Config {
	return Config{
		Now: func() time.Time { return noon },
		APIKeys: []APIKey{
			{ID: "alice", SHA256: HashKey("key-of-alice"), Tenant: "acme", Roles: []Role{RoleUser, RoleOperator}},
			{ID: "bot", SHA256: strings.ToUpper(HashKey("key-of-bot")), Subject: "The Bot", Tenant: "umbrella", Expires: noon.Add(time.Hour)},
		},
	}
}

func newAuth(t *testing.T, c Config) Authenticator {
	a, err := New(t.Context(), c)
	require.NoError(t, err)
	require.Implements(t, (*Revoker)(nil), a)
	require.Implements(t, (*Reloader)(nil), a)
	return a
}

func code(err error) fault.Code {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Code
	}
	return fault.Code(fmt.Sprint(err))
}

func TestAPIKeys(t *testing.T) {
	a := newAuth(t, twoKeys())
	p, err := a.Authenticate(t.Context(), "key-of-alice")
	require.NoError(t, err)
	require.Equal(t, "alice", p.Subject)
	require.Equal(t, tenant(t, "acme"), p.Tenant)
	require.True(t, p.Has(RoleUser) && p.Has(RoleOperator))
	require.False(t, p.Has(RoleAgent))
	require.Zero(t, p.Expires)

	p, err = a.Authenticate(t.Context(), "key-of-bot")
	require.NoError(t, err)
	require.Equal(t, "The Bot", p.Subject)
	require.Equal(t, tenant(t, "umbrella"), p.Tenant)
	require.Equal(t, []Role{RoleUser}, p.Roles)
	require.Equal(t, noon.Add(time.Hour), p.Expires)

	for _, bad := range []string{
		"", " ", "key-of-alic", "key-of-alice ", "KEY-OF-ALICE", "alice", HashKey("key-of-alice"), "a.b.c", "\x00", strings.Repeat("k", maxToken+1),
	} {
		_, err := a.Authenticate(t.Context(), bad)
		require.Equal(t, fault.Unauthenticated, code(err), bad)
	}
}

func TestAnAPIKeyExpires(t *testing.T) {
	now := noon
	c := twoKeys()
	c.Now = func() time.Time { return now }
	a := newAuth(t, c)
	now = noon.Add(time.Hour - 1)
	_, err := a.Authenticate(t.Context(), "key-of-bot")
	require.NoError(t, err)
	now = noon.Add(time.Hour)
	_, err = a.Authenticate(t.Context(), "key-of-bot")
	require.Equal(t, fault.Expired, code(err))
}

// A principal is revoked when the configuration would not produce it any more.
func TestReloadRevokes(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Config)
		revoked bool
	}{
		"nothing":           {func(*Config) {}, false},
		"order":             {func(c *Config) { c.APIKeys[0], c.APIKeys[1] = c.APIKeys[1], c.APIKeys[0] }, false},
		"another key":       {func(c *Config) { c.APIKeys[1].SHA256 = HashKey("new") }, false},
		"the key removed":   {func(c *Config) { c.APIKeys = c.APIKeys[1:] }, true},
		"the key replaced":  {func(c *Config) { c.APIKeys[0].SHA256 = HashKey("new") }, true},
		"the key renamed":   {func(c *Config) { c.APIKeys[0].ID = "alice2" }, true},
		"another tenant":    {func(c *Config) { c.APIKeys[0].Tenant = "umbrella" }, true},
		"fewer roles":       {func(c *Config) { c.APIKeys[0].Roles = []Role{RoleUser} }, true},
		"an earlier expiry": {func(c *Config) { c.APIKeys[0].Expires = noon.Add(time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuth(t, twoKeys())
			revoker, reloader := a.(Revoker), a.(Reloader)
			p, err := a.Authenticate(t.Context(), "key-of-alice")
			require.NoError(t, err)
			require.False(t, revoker.Revoked(p))
			require.True(t, revoker.Revoked(Principal{Subject: "alice", Tenant: p.Tenant}), "not made by us")

			next := twoKeys()
			c.change(&next)
			require.NoError(t, reloader.Reload(t.Context(), next))
			require.Equal(t, c.revoked, revoker.Revoked(p))
		})
	}
}

func TestABadReloadChangesNothing(t *testing.T) {
	a := newAuth(t, twoKeys())
	p, err := a.Authenticate(t.Context(), "key-of-alice")
	require.NoError(t, err)
	require.Error(t, a.(Reloader).Reload(t.Context(), Config{}))
	require.False(t, a.(Revoker).Revoked(p))
	_, err = a.Authenticate(t.Context(), "key-of-alice")
	require.NoError(t, err)
}

func TestABadConfigurationNamesTheOption(t *testing.T) {
	const secret = "pasted-key-instead-of-hash"
	key := func(change func(*APIKey)) Config {
		k := APIKey{ID: "k", SHA256: HashKey("k"), Tenant: "acme"}
		change(&k)
		return Config{APIKeys: []APIKey{{ID: "first", SHA256: HashKey("first"), Tenant: "acme"}, k}}
	}
	jwt := func(change func(*JWTConfig)) Config {
		j := JWTConfig{Issuer: "https://issuer.example", Audience: "waggle", JWKSURL: "https://issuer.example/keys"}
		change(&j)
		return Config{JWT: &j}
	}
	for want, c := range map[string]Config{
		"configure auth.api_keys or auth.jwt":   {},
		"auth.api_keys[1].id: invalid":          key(func(k *APIKey) { k.ID = "a b" }),
		"auth.api_keys[1].id: \"first\" occurs": key(func(k *APIKey) { k.ID = "first" }),
		"auth.api_keys[1].sha256: the same":     key(func(k *APIKey) { k.SHA256 = HashKey("first") }),
		"auth.api_keys[1].sha256: want":         key(func(k *APIKey) { k.SHA256 = secret }),
		"auth.api_keys[1].sha256: want ":        key(func(k *APIKey) { k.SHA256 = HashKey("") }),
		"auth.api_keys[1].tenant":               key(func(k *APIKey) { k.Tenant = "a.>" }),
		"auth.api_keys[1].roles: \"root\"":      key(func(k *APIKey) { k.Roles = []Role{"root"} }),
		"auth.api_keys[1].subject":              key(func(k *APIKey) { k.Subject = "a\nb" }),
		"auth.jwt.issuer":                       jwt(func(j *JWTConfig) { j.Issuer = "" }),
		"auth.jwt.audience":                     jwt(func(j *JWTConfig) { j.Audience = "" }),
		"auth.jwt.leeway":                       jwt(func(j *JWTConfig) { j.Leeway = -1 }),
		"auth.jwt: set one":                     jwt(func(j *JWTConfig) { j.JWKSURL = "" }),
		"auth.jwt: set one of":                  jwt(func(j *JWTConfig) { j.JWKSFile = "both" }),
		"auth.jwt.jwks_url: want":               jwt(func(j *JWTConfig) { j.JWKSURL = "http://issuer.example/keys" }),
		"auth.jwt.jwks_url: want an":            jwt(func(j *JWTConfig) { j.JWKSURL = "file:///etc/passwd" }),
		"auth.jwt.jwks_url: parse":              jwt(func(j *JWTConfig) { j.JWKSURL = "https://[" }),
		"auth.jwt.jwks_file: open":              jwt(func(j *JWTConfig) { j.JWKSURL, j.JWKSFile = "", "/does/not/exist" }),
	} {
		_, err := New(t.Context(), c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), secret)
	}
}

func TestAllAnonymousClientsAreOnePrincipal(t *testing.T) {
	for _, token := range []string{"", "anything"} {
		p, err := Anonymous().Authenticate(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, "anonymous", p.Subject)
		require.Equal(t, id.DefaultTenant, p.Tenant)
		require.True(t, p.Has(RoleUser) && p.Has(RoleOperator) && p.Has(RoleAgent) && p.Has(RoleService))
	}
}
