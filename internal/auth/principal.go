package auth

import (
	"context"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Role is a set of rights of a principal.
type Role string

// The roles.
const (
	RoleUser     Role = "user"     // takes part in sessions
	RoleOperator Role = "operator" // looks after the installation
	RoleAgent    Role = "agent"    // an agent that connects from outside
	RoleService  Role = "service"  // a provider of tools that connects from outside
	RoleViewer   Role = "viewer"   // watches everything in its tenant, and changes nothing
)

var roles = []Role{RoleUser, RoleOperator, RoleAgent, RoleService, RoleViewer}

// Principal is the holder of a token.
type Principal struct {
	Subject string // name, unique within the tenant; for logs and records
	Tenant  id.Tenant
	Roles   []Role    // never modified
	Expires time.Time // end of the credential, for a JWT with the leeway; zero = never

	credential credential
}

// Has reports whether the principal has the role.
func (p Principal) Has(r Role) bool { return slices.Contains(p.Roles, r) }

// MayAct reports whether the principal may change state: send messages, answer, cancel. Such a principal may also
// watch.
func (p Principal) MayAct() bool { return p.Has(RoleUser) || p.Has(RoleOperator) }

// MayWatch reports whether the principal may read everything in its tenant.
func (p Principal) MayWatch() bool { return p.MayAct() || p.Has(RoleViewer) }

// Owns reports whether the log belongs to the principal's tenant. Callers check it before every access to a log;
// MayAct decides whether the principal may change the log. The zero Principal owns nothing.
func (p Principal) Owns(l subject.Log) bool {
	return !p.Tenant.IsZero() && p.Tenant == l.Tenant
}

// Authenticator turns tokens into principals. Implementations are safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the principal of the token. The error is a *fault.Fault: fault.Unauthenticated or
	// fault.Expired for an invalid token, and the retryable fault.Internal if the check is impossible now (the
	// issuer's keys cannot be fetched, or ctx ended). Neither contains the token.
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// Revoker is implemented by Authenticators that can withdraw credentials before they expire. Owners of long
// connections call it every few seconds.
type Revoker interface {
	// Revoked reports whether the credential of p was withdrawn. It ignores p.Expires, does not use the network and is
	// safe for concurrent use.
	Revoked(p Principal) bool
}

// credential records the origin of a principal, for Revoked. It does not contain secrets.
type credential struct {
	key    string   // id of the API key
	digest [32]byte // of the API key, or of the JWT settings in the configuration
	issuer string   // of the JWT
	signer thumbprint
}

// known returns the names that are roles.
func known(names []string) []Role {
	var out []Role
	for _, n := range names {
		if r := Role(n); slices.Contains(roles, r) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

func alive(p Principal, now time.Time) (Principal, error) {
	if !p.Expires.IsZero() && !now.Before(p.Expires) {
		return Principal{}, fault.New(fault.Expired)
	}
	return p, nil
}
