package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// defaultLeeway covers, with a good margin, the difference between hosts with a working time service; it also
	// prolongs the life of a stolen token.
	defaultLeeway = 30 * time.Second
	// defaultMaxAge is a working day and a night: a token that its issuer cannot withdraw ends by then, whatever its exp.
	defaultMaxAge = 24 * time.Hour
	// maxSubject bounds the subject in bytes, because every record of a principal's actions contains it. OpenID
	// Connect allows 255.
	maxSubject = 255
)

// verifier accepts the JWTs of one issuer.
type verifier struct {
	JWTConfig
	mark  [sha256.Size]byte // of the settings that decide which principal a token stands for
	now   func() time.Time
	keys  keySource
	check *oidc.IDTokenVerifier
}

// keySource checks signatures.
type keySource interface {
	// VerifySignature returns the payload. It records the key, or the failure to get the keys, in the attempt of ctx.
	// It is safe for concurrent use.
	oidc.KeySet
	// knows reports whether the key, as recorded in an attempt, is still valid.
	knows(key thumbprint) bool
}

func newVerifier(ctx context.Context, c JWTConfig, now func() time.Time, log zerolog.Logger) (*verifier, error) {
	switch {
	case c.Issuer == "":
		return nil, errors.New("auth.jwt.issuer: required")
	case c.Audience == "":
		return nil, errors.New("auth.jwt.audience: required: without it, tokens for other programs would be accepted")
	case c.Leeway < 0:
		return nil, errors.New("auth.jwt.leeway: must not be negative")
	case c.MaxAge < 0:
		return nil, errors.New("auth.jwt.max_age: must not be negative")
	case (c.JWKSFile == "") == (c.JWKSURL == ""):
		return nil, errors.New("auth.jwt: set one of jwks_file and jwks_url")
	}
	c.TenantClaim = orDefault(c.TenantClaim, "tenant")
	c.RolesClaim = orDefault(c.RolesClaim, "roles")
	c.Leeway = orDefault(c.Leeway, defaultLeeway)
	c.MaxAge = orDefault(c.MaxAge, defaultMaxAge)
	v := &verifier{JWTConfig: c, mark: c.mark(), now: now}
	var err error
	if c.JWKSFile != "" {
		v.keys, err = newFileKeys(c.JWKSFile, now, log)
	} else {
		v.keys, err = newRemoteKeys(ctx, c.JWKSURL, now, log)
	}
	// Times are checked below, with the configured leeway.
	v.check = oidc.NewVerifier(c.Issuer, v.keys, &oidc.Config{
		ClientID: c.Audience, SupportedSigningAlgs: algorithms, SkipExpiryCheck: true,
	})
	return v, err
}

// mark changes if a token may stand for another principal. It compares the keys of a file one by one, so that the
// file's name does not matter.
func (c JWTConfig) mark() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []string{c.Issuer, c.Audience, c.JWKSURL, c.TenantClaim, c.RolesClaim}))
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (v *verifier) authenticate(ctx context.Context, token string) (Principal, error) {
	if !compact(token) {
		return Principal{}, refused(errors.New("neither an API key nor a JWT"))
	}
	var a attempt
	verified, err := v.check.Verify(context.WithValue(ctx, attemptKey{}, &a), token)
	if err != nil {
		if a.outage != nil {
			return Principal{}, fault.Newf(fault.Internal, "Credentials cannot be checked now. Try again later.").Wrap(a.outage)
		}
		return Principal{}, refused(err)
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return Principal{}, refused(err)
	}
	p, err := v.principal(verified, c)
	if err != nil {
		return Principal{}, refused(err)
	}
	p.credential = credential{issuer: v.Issuer, digest: v.mark, signer: a.key}
	return alive(p, v.now())
}

// compact reports whether the token has the form of a JWT. The library would also accept white space within, and the
// JSON form, which may carry several signatures.
func compact(token string) bool {
	return strings.Count(token, ".") == 2 && !strings.ContainsFunc(token, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// principal reads the claims of a token with a valid signature.
func (v *verifier) principal(t *oidc.IDToken, c claims) (Principal, error) {
	if t.Expiry.IsZero() {
		return Principal{}, errors.New("the token has no exp")
	}
	begins, err := c.notBefore()
	if err != nil {
		return Principal{}, err
	}
	if v.now().Add(v.Leeway).Before(begins) {
		return Principal{}, fmt.Errorf("the token is not valid before %s", begins.UTC().Format(time.RFC3339))
	}
	ends, err := v.ends(t)
	if err != nil {
		return Principal{}, err
	}
	// exp is exact; Expires includes the leeway, so that a connection lives as long as its token would have been
	// accepted.
	p := Principal{Subject: t.Subject, Expires: ends.Add(v.Leeway)}
	if err := checkSubject(p.Subject); err != nil {
		return Principal{}, fmt.Errorf("sub: %w", err)
	}
	var tenant string
	if err := c.read(v.TenantClaim, &tenant); err != nil {
		return Principal{}, err
	}
	if p.Tenant, err = id.ParseTenant(tenant); err != nil {
		return Principal{}, fmt.Errorf("claim %s: %w", v.TenantClaim, err)
	}
	p.Roles, err = c.roles(v.RolesClaim)
	return p, err
}

// ends returns the end of a token's life: its exp, or the greatest age if that comes first.
func (v *verifier) ends(t *oidc.IDToken) (time.Time, error) {
	switch {
	case t.IssuedAt.IsZero():
		return time.Time{}, errors.New("the token has no iat")
	case v.now().Add(v.Leeway).Before(t.IssuedAt):
		return time.Time{}, fmt.Errorf("the token is issued in the future, %s", t.IssuedAt.UTC().Format(time.RFC3339))
	}
	if oldest := t.IssuedAt.Add(v.MaxAge); oldest.Before(t.Expiry) {
		return oldest, nil
	}
	return t.Expiry, nil
}

func (v *verifier) revoked(c credential) bool {
	return c.digest != v.mark || !v.keys.knows(c.signer)
}

// claims holds the unparsed claims of a token.
type claims map[string]json.RawMessage

// notBefore returns nbf, or the zero time if it is absent.
func (c claims) notBefore() (time.Time, error) {
	raw, ok := c["nbf"]
	if !ok {
		return time.Time{}, nil
	}
	var seconds float64
	if err := json.Unmarshal(raw, &seconds); err != nil || math.Abs(seconds) > 1<<53 {
		return time.Time{}, errors.New("nbf is not a time")
	}
	return time.Unix(int64(seconds), 0), nil
}

// find returns the claim of that name, or follows the dots of the name into objects, where Keycloak and others keep
// their claims.
func (c claims) find(name string) (json.RawMessage, bool) {
	if raw, ok := c[name]; ok {
		return raw, true
	}
	first, rest, found := strings.Cut(name, ".")
	raw, ok := c[first]
	if !found || !ok {
		return nil, false
	}
	var inner claims
	if json.Unmarshal(raw, &inner) != nil {
		return nil, false
	}
	return inner.find(rest)
}

// read stores a required claim.
func (c claims) read(name string, v any) error {
	raw, ok := c.find(name)
	if !ok {
		return fmt.Errorf("the token has no claim %s", name)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("claim %s is not of the expected form", name)
	}
	return nil
}

// roles returns the known roles of the claim: issuers put the roles of other programs into the same list. Without the
// claim the principal is a user.
func (c claims) roles(name string) ([]Role, error) {
	raw, ok := c.find(name)
	if !ok {
		return []Role{RoleUser}, nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		var words string
		if err := json.Unmarshal(raw, &words); err != nil {
			return nil, fmt.Errorf("claim %s is not of the expected form", name)
		}
		list = strings.Fields(words)
	}
	return known(list), nil
}

// checkSubject refuses subjects that a reader of a record could mistake for another principal's.
func checkSubject(s string) error {
	switch {
	case s == "":
		return errors.New("empty")
	case len(s) > maxSubject:
		return fmt.Errorf("longer than %d bytes", maxSubject)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return errors.New("has characters that cannot be seen")
	}
	return nil
}

// JWTConfig describes the accepted JWTs. They must be signed with an asymmetric algorithm, carry iss, aud, sub, iat
// and exp, and name a tenant.
type JWTConfig struct {
	Issuer      string        // exact value of iss, required
	Audience    string        // must be in aud, required
	JWKSFile    string        // the issuer's public keys; this or JWKSURL
	JWKSURL     string        // their address: https, or http on a loopback address
	TenantClaim string        // default: tenant; a.b selects b in a unless a claim a.b exists
	RolesClaim  string        // default: roles; a list or a string with spaces; absent = user
	Leeway      time.Duration // tolerated difference of clocks; default 30 s
	MaxAge      time.Duration // since iat, whatever exp says; default 24 h
}

func refused(why error) error { return fault.New(fault.Unauthenticated).Wrap(why) }
