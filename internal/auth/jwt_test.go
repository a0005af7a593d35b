package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const audience = "waggle"

// signer is one key of an issuer.
type signer struct {
	kid    string
	method jwt.SigningMethod
	key    crypto.Signer
}

func newSigner(t testing.TB, kid string, method jwt.SigningMethod) *signer {
	var key crypto.Signer
	var err error
	switch method.(type) {
	case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case *jwt.SigningMethodECDSA:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	require.NoError(t, err)
	return &signer{kid, method, key}
}

func (s *signer) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.Public(), KeyID: s.kid, Use: "sig", Algorithm: s.method.Alg()}
}

// mint signs claims; nil removes a valid one.
func (s *signer) mint(t testing.TB, changes jwt.MapClaims) string {
	c := jwt.MapClaims{
		"iss": "https://issuer.example", "aud": audience, "sub": "alice", "tenant": "acme",
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(), "roles": []string{"user", "offline_access", "operator"},
	}
	for k, v := range changes {
		if v == nil {
			delete(c, k)
			continue
		}
		c[k] = v
	}
	tok := jwt.NewWithClaims(s.method, c)
	if s.kid != "" {
		tok.Header["kid"] = s.kid
	}
	signed, err := tok.SignedString(s.key)
	require.NoError(t, err)
	return signed
}

func keySet(t testing.TB, signers ...*signer) []byte {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, s := range signers {
		set.Keys = append(set.Keys, s.public())
	}
	doc, err := json.Marshal(set)
	require.NoError(t, err)
	return doc
}

func jwtConfig(change func(*JWTConfig)) Config {
	j := JWTConfig{Issuer: "https://issuer.example", Audience: audience}
	change(&j)
	return Config{JWT: &j, Now: func() time.Time { return noon }}
}

func fromFile(t testing.TB, doc []byte) Config {
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, doc, 0o600))
	return jwtConfig(func(j *JWTConfig) { j.JWKSFile = path })
}

func TestAGoodTokenOfEveryAlgorithm(t *testing.T) {
	for _, method := range []jwt.SigningMethod{jwt.SigningMethodRS256, jwt.SigningMethodPS384, jwt.SigningMethodES256, jwt.SigningMethodEdDSA} {
		s := newSigner(t, "k1", method)
		server := newIssuer(t, keySet(t, s))
		for from, c := range map[string]Config{
			"file": fromFile(t, keySet(t, s)),
			"url":  jwtConfig(func(j *JWTConfig) { j.JWKSURL = server.URL }),
		} {
			p, err := newAuth(t, c).Authenticate(t.Context(), s.mint(t, nil))
			require.NoError(t, err, "%s %s", method.Alg(), from)
			require.Equal(t, "alice", p.Subject)
			require.Equal(t, tenant(t, "acme"), p.Tenant)
			require.Equal(t, []Role{RoleUser, RoleOperator}, p.Roles)
			require.Equal(t, noon.Add(time.Hour+defaultLeeway), p.Expires.UTC())
		}
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	stranger := newSigner(t, "k1", jwt.SigningMethodES256)
	a := newAuth(t, fromFile(t, keySet(t, s)))
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	good := s.mint(t, nil)
	parts := strings.Split(good, ".")

	refusals := map[string]string{
		"wrong issuer":          s.mint(t, jwt.MapClaims{"iss": "https://issuer.example/"}),
		"no issuer":             s.mint(t, jwt.MapClaims{"iss": nil}),
		"wrong audience":        s.mint(t, jwt.MapClaims{"aud": "other"}),
		"wrong audiences":       s.mint(t, jwt.MapClaims{"aud": []string{"other", "waggle2"}}),
		"no audience":           s.mint(t, jwt.MapClaims{"aud": nil}),
		"no expiry":             s.mint(t, jwt.MapClaims{"exp": nil}),
		"expiry as text":        s.mint(t, jwt.MapClaims{"exp": "tomorrow"}),
		"not yet":               s.mint(t, jwt.MapClaims{"nbf": at(31 * time.Second)}),
		"not before as text":    s.mint(t, jwt.MapClaims{"nbf": "x"}),
		"not before too large":  s.mint(t, jwt.MapClaims{"nbf": 1e300}),
		"not issued":            s.mint(t, jwt.MapClaims{"iat": nil}),
		"issued later":          s.mint(t, jwt.MapClaims{"iat": at(31 * time.Second)}),
		"no subject":            s.mint(t, jwt.MapClaims{"sub": nil}),
		"empty subject":         s.mint(t, jwt.MapClaims{"sub": ""}),
		"long subject":          s.mint(t, jwt.MapClaims{"sub": strings.Repeat("a", 256)}),
		"invisible subject":     s.mint(t, jwt.MapClaims{"sub": "alice\u202e"}),
		"no tenant":             s.mint(t, jwt.MapClaims{"tenant": nil}),
		"empty tenant":          s.mint(t, jwt.MapClaims{"tenant": ""}),
		"tenant with wildcard":  s.mint(t, jwt.MapClaims{"tenant": "*"}),
		"tenant with a dot":     s.mint(t, jwt.MapClaims{"tenant": "acme.session"}),
		"long tenant":           s.mint(t, jwt.MapClaims{"tenant": strings.Repeat("a", 65)}),
		"tenant as list":        s.mint(t, jwt.MapClaims{"tenant": []string{"acme"}}),
		"tenant as null":        s.mint(t, jwt.MapClaims{"tenant": json.RawMessage("null")}),
		"roles as number":       s.mint(t, jwt.MapClaims{"roles": 7}),
		"signed by a stranger":  stranger.mint(t, nil),
		"unknown key":           newSigner(t, "k2", jwt.SigningMethodES256).mint(t, nil),
		"another algorithm":     newSigner(t, "k1", jwt.SigningMethodRS256).mint(t, nil),
		"symmetric":             hmacToken(t, s),
		"none":                  noneToken(t),
		"none with old payload": part(`{"alg":"none"}`) + "." + parts[1] + ".",
		"no signature":          parts[0] + "." + parts[1] + ".",
		"signature of another":  parts[0] + "." + parts[1] + "." + strings.Split(s.mint(t, jwt.MapClaims{"sub": "bob"}), ".")[2],
		"changed payload":       parts[0] + "." + part(`{"iss":"https://issuer.example","aud":"waggle","sub":"root","tenant":"acme","exp":9999999999}`) + "." + parts[2],
		"two parts":             parts[0] + "." + parts[1],
		"four parts":            good + ".x",
		"with a space":          good + " ",
		"JSON serialization":    `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"only dots":             "..",
		"critical header":       part(`{"alg":"ES256","crit":["b64"],"b64":false}`) + "." + parts[1] + "." + parts[2],
		"not base64":            "*.*.*",
		"huge":                  s.mint(t, jwt.MapClaims{"x": strings.Repeat("a", maxToken)}),
	}
	for name, token := range refusals {
		_, err := a.Authenticate(t.Context(), token)
		require.Equal(t, fault.Unauthenticated, code(err), "%s: %v", name, err)
		leaksNothing(t, err, token)
	}
	for name, token := range map[string]string{
		"expired":             s.mint(t, jwt.MapClaims{"exp": at(-30 * time.Second)}),
		"too old":             s.mint(t, jwt.MapClaims{"iat": at(-24*time.Hour - 30*time.Second)}),
		"expired long ago":    s.mint(t, jwt.MapClaims{"exp": 0}),
		"expired before time": s.mint(t, jwt.MapClaims{"exp": -5}),
		"expiry overflows":    s.mint(t, jwt.MapClaims{"exp": int64(math.MaxInt64)}),
	} {
		_, err := a.Authenticate(t.Context(), token)
		require.Equal(t, fault.Expired, code(err), "%s: %v", name, err)
		leaksNothing(t, err, token)
	}
	t.Logf("%d tokens refused", len(refusals)+5)
}

func TestLeewayAndForms(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	a := newAuth(t, fromFile(t, keySet(t, s)))
	for name, changes := range map[string]jwt.MapClaims{
		"just expired":      {"exp": noon.Add(-29 * time.Second).Unix()},
		"almost too old":    {"iat": noon.Add(-24*time.Hour - 29*time.Second).Unix()},
		"almost issued":     {"iat": noon.Add(30 * time.Second).Unix()},
		"almost valid":      {"nbf": noon.Add(30 * time.Second).Unix()},
		"fractions":         {"exp": float64(noon.Unix()) + 0.5, "nbf": float64(noon.Unix()) - 0.5},
		"several audiences": {"aud": []string{"other", audience}},
		"more claims":       {"nonce": "x", "_claim_names": map[string]string{}, "azp": "y"},
	} {
		_, err := a.Authenticate(t.Context(), s.mint(t, changes))
		require.NoError(t, err, name)
	}
	for _, c := range []struct {
		roles any
		want  []Role
	}{
		{nil, []Role{RoleUser}},
		{"agent service agent", []Role{RoleAgent, RoleService}},
		{[]string{"admin", "root"}, nil},
		{"", nil},
	} {
		p, err := a.Authenticate(t.Context(), s.mint(t, jwt.MapClaims{"roles": c.roles}))
		require.NoError(t, err)
		require.Equal(t, c.want, p.Roles)
	}
}

// A token does not live longer than a day, whatever its exp says: its issuer cannot withdraw it.
func TestTheAgeOfATokenIsBounded(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	token := s.mint(t, jwt.MapClaims{"iat": noon.Add(-time.Hour).Unix(), "exp": noon.AddDate(10, 0, 0).Unix()})
	c := fromFile(t, keySet(t, s))
	p, err := newAuth(t, c).Authenticate(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, noon.Add(23*time.Hour+defaultLeeway), p.Expires.UTC())
	c.JWT.MaxAge = 30 * time.Minute
	_, err = newAuth(t, c).Authenticate(t.Context(), token)
	require.Equal(t, fault.Expired, code(err))
	c.JWT.MaxAge = -1
	_, err = New(t.Context(), c)
	require.ErrorContains(t, err, "auth.jwt.max_age")
}

func TestClaimsWithOtherNames(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodEdDSA)
	c := fromFile(t, keySet(t, s))
	c.JWT.TenantClaim, c.JWT.RolesClaim = "https://waggle.example/tenant", "realm_access.roles"
	p, err := newAuth(t, c).Authenticate(t.Context(), s.mint(t, jwt.MapClaims{
		"tenant": "umbrella", "https://waggle.example/tenant": "acme", "realm_access": map[string]any{"roles": []string{"service"}},
	}))
	require.NoError(t, err)
	require.Equal(t, tenant(t, "acme"), p.Tenant)
	require.Equal(t, []Role{RoleService}, p.Roles)
}

func TestAKeyFileThatChanges(t *testing.T) {
	first, second := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k1", jwt.SigningMethodES256)
	var log bytes.Buffer
	c := fromFile(t, keySet(t, first))
	now := noon
	c.Now = func() time.Time { return now }
	c.Logger = zerolog.New(&log)
	a := newAuth(t, c)
	write := func(doc []byte) {
		require.NoError(t, os.WriteFile(c.JWT.JWKSFile, doc, 0o600))
		now = now.Add(recheck)
	}
	old, err := a.Authenticate(t.Context(), first.mint(t, nil))
	require.NoError(t, err)

	write(keySet(t, first, second))
	p, err := a.Authenticate(t.Context(), second.mint(t, nil))
	require.NoError(t, err)
	require.False(t, a.(Revoker).Revoked(old), "both keys are good")

	// Half written, empty and missing files change nothing.
	for _, doc := range [][]byte{keySet(t, second)[:20], {}, []byte(`{"keys":[]}`)} {
		write(doc)
		require.False(t, a.(Revoker).Revoked(old))
	}
	require.NoError(t, os.Remove(c.JWT.JWKSFile))
	now = now.Add(recheck)
	require.False(t, a.(Revoker).Revoked(old))
	require.Contains(t, log.String(), "previous keys stay in use")

	// The same kid, another key: tokens of the old one are revoked.
	write(keySet(t, second))
	require.True(t, a.(Revoker).Revoked(old))
	require.False(t, a.(Revoker).Revoked(p))
	_, err = a.Authenticate(t.Context(), first.mint(t, nil))
	require.Equal(t, fault.Unauthenticated, code(err))
}

func TestJWTsAreRevokedWithTheirIssuer(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	c := fromFile(t, keySet(t, s))
	a := newAuth(t, c)
	p, err := a.Authenticate(t.Context(), s.mint(t, nil))
	require.NoError(t, err)
	other := *c.JWT
	other.Issuer = "https://other.example"
	require.NoError(t, a.(Reloader).Reload(t.Context(), Config{JWT: &other, Now: c.Now}))
	require.True(t, a.(Revoker).Revoked(p))
	require.NoError(t, a.(Reloader).Reload(t.Context(), c))
	require.False(t, a.(Revoker).Revoked(p))
	for _, change := range []func(*JWTConfig){
		func(j *JWTConfig) { j.Audience = "others" },
		func(j *JWTConfig) { j.TenantClaim = "org" },
		func(j *JWTConfig) { j.RolesClaim = "groups" },
	} {
		other := *c.JWT
		change(&other)
		require.NoError(t, a.(Reloader).Reload(t.Context(), Config{JWT: &other, Now: c.Now}))
		require.True(t, a.(Revoker).Revoked(p), "the token may belong to another user")
	}
	require.NoError(t, a.(Reloader).Reload(t.Context(), c))
	require.False(t, a.(Revoker).Revoked(p))
	require.NoError(t, a.(Reloader).Reload(t.Context(), twoKeys()))
	require.True(t, a.(Revoker).Revoked(p))
}

func TestKeySets(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	private, err := json.Marshal(jose.JSONWebKey{Key: s.key, KeyID: "p"})
	require.NoError(t, err)
	good := string(keySet(t, s))
	for doc, want := range map[string]string{
		``:                                    "not a JWK set",
		`[]`:                                  "not a JWK set",
		`{}`:                                  "not a JWK set",
		`{"keys":[]}`:                         "no public key",
		`{"keys":[{"kty":"oct","k":"AAAA"}]}`: "is a secret",
		`{"keys":[` + string(private) + `]}`:  "is a secret",
		`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`:               "keys[0]",
		`{"keys":[{"kty":"NEW","x":"AA"}]}`:                                     "no public key",
		strings.Replace(good, `"use":"sig"`, `"use":"enc"`, 1):                  "no public key",
		strings.Replace(good, `{"keys":[`, `{"keys":[{"kty":"oct","k":""},`, 1): "keys[0]",
	} {
		_, err := parseJWKS([]byte(doc))
		require.ErrorContains(t, err, want, doc)
	}
	keys, err := parseJWKS([]byte(strings.Replace(good, `{"keys":[`, `{"keys":[{"kty":"NEW"},`, 1)))
	require.NoError(t, err)
	require.Len(t, keys, 1, "a kind of tomorrow does not disturb")
}

func FuzzAuthenticate(f *testing.F) {
	s := newSigner(f, "k1", jwt.SigningMethodES256)
	a, err := New(context.Background(), fromFile(f, keySet(f, s)))
	require.NoError(f, err)
	good := s.mint(f, nil)
	f.Add(good)
	f.Add(noneToken(f))
	f.Add(hmacToken(f, s))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := a.Authenticate(t.Context(), token); err == nil {
			// A signature has several spellings, the signed text has one.
			require.Equal(t, good[:strings.LastIndexByte(good, '.')], token[:strings.LastIndexByte(token, '.')])
		}
	})
}

func part(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func noneToken(t testing.TB) string {
	tok := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{
		"iss": "https://issuer.example", "aud": audience, "sub": "alice", "tenant": "acme", "exp": noon.Add(time.Hour).Unix(),
	})
	s, err := tok.SignedString(jwt.UnsafeAllowNoneSignatureType)
	require.NoError(t, err)
	return s
}

// hmacToken is signed with the public key as the secret of a symmetric algorithm.
func hmacToken(t testing.TB, s *signer) string {
	public, err := s.public().MarshalJSON()
	require.NoError(t, err)
	tok := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://issuer.example", "aud": audience, "sub": "alice", "tenant": "acme", "exp": noon.Add(time.Hour).Unix(),
	})
	tok.Header["kid"] = s.kid
	signed, err := tok.SignedString(public)
	require.NoError(t, err)
	return signed
}

// leaksNothing fails if the error quotes the token or a part of it.
func leaksNothing(t *testing.T, err error, token string) {
	for p := range strings.SplitSeq(token, ".") {
		if len(p) > 12 {
			require.NotContains(t, err.Error(), p)
		}
	}
}
