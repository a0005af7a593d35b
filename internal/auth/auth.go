// Package auth turns tokens into principals with name, tenant and rights.
//
// Tokens are static API keys, of which the configuration holds only the hash, or JWTs of an OpenID
// Connect issuer. Without either, requests are not authenticated, which is allowed on a loopback
// address only. Logs and errors never contain a token or a part of one.
package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxToken bounds the token in bytes before it is hashed and parsed. Browsers limit a cookie, a usual source of such
// tokens, to half of it.
const maxToken = 8 << 10

// Config lists the accepted credentials. The zero Config accepts none.
type Config struct {
	APIKeys []APIKey
	JWT     *JWTConfig // nil = JWTs are refused
	Logger  zerolog.Logger
	Now     func() time.Time // nil = time.Now
}

// Empty reports whether c does not accept any credential, which means that requests are not authenticated.
func (c Config) Empty() bool { return len(c.APIKeys) == 0 && c.JWT == nil }

// New returns the authenticator for c, or an error that names the option. An empty Config is an error. The result
// also implements Revoker and Reloader. It fetches keys from a URL at their first use, so that the program starts
// while the issuer is down; it uses only the values of ctx.
func New(ctx context.Context, c Config) (Authenticator, error) {
	s, err := newState(ctx, c)
	if err != nil {
		return nil, err
	}
	a := &authenticator{}
	a.state.Store(s)
	return a, nil
}

// Reloader is implemented by the Authenticators of New.
type Reloader interface {
	// Reload replaces the configuration with c. Principals whose credential has left c, or has another meaning now,
	// are Revoked from then on. On an error, which names the option, nothing changes.
	Reload(ctx context.Context, c Config) error
}

type authenticator struct{ state atomic.Pointer[state] }

// state is derived from one configuration and never changes.
type state struct {
	now  func() time.Time
	keys keyring
	jwt  *verifier // nil = not configured
}

func newState(ctx context.Context, c Config) (*state, error) {
	if c.Empty() {
		return nil, errors.New("auth: configure auth.api_keys or auth.jwt")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	keys, err := newKeyring(c.APIKeys)
	if err != nil {
		return nil, err
	}
	s := &state{now: c.Now, keys: keys}
	if c.JWT != nil {
		s.jwt, err = newVerifier(ctx, *c.JWT, c.Now, c.Logger)
	}
	return s, err
}

func (a *authenticator) Reload(ctx context.Context, c Config) error {
	s, err := newState(ctx, c)
	if err != nil {
		return err
	}
	a.state.Store(s)
	return nil
}

// Authenticate tries the API keys first: comparing hashes is cheaper than checking a signature, and a JWT never
// equals an API key.
func (a *authenticator) Authenticate(ctx context.Context, token string) (Principal, error) {
	if token == "" || len(token) > maxToken {
		return Principal{}, refused(fmt.Errorf("a token of %d bytes", len(token)))
	}
	s := a.state.Load()
	if p, ok := s.keys.find(token); ok {
		return alive(p, s.now())
	}
	if s.jwt == nil {
		return Principal{}, refused(errors.New("no such API key"))
	}
	return s.jwt.authenticate(ctx, token)
}

func (a *authenticator) Revoked(p Principal) bool {
	s := a.state.Load()
	if p.credential.issuer != "" {
		return s.jwt == nil || s.jwt.revoked(p.credential)
	}
	return !s.keys.holds(p)
}

// Anonymous returns the authenticator of an installation without authentication: every token belongs to "anonymous"
// of the default tenant, with every role. Legal only where RequireLoopback is satisfied.
func Anonymous() Authenticator { return anonymous{} }

type anonymous struct{}

func (anonymous) Authenticate(context.Context, string) (Principal, error) {
	return Principal{
		Subject: "anonymous",
		Tenant:  id.DefaultTenant,
		Roles:   []Role{RoleUser, RoleOperator, RoleAgent, RoleService},
	}, nil
}
