package auth

import (
	"context"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Role is what a principal may act as.
type Role string

// The roles.
const (
	RoleUser     Role = "user"     // takes part in sessions
	RoleOperator Role = "operator" // looks after the installation
	RoleAgent    Role = "agent"    // an agent that connects from outside
	RoleService  Role = "service"  // a tool service that connects from outside
	RoleViewer   Role = "viewer"   // watches what there is in its tenant, and changes nothing
)

var roles = []Role{RoleUser, RoleOperator, RoleAgent, RoleService, RoleViewer}

// Principal is who a token stands for.
type Principal struct {
	Subject string // who it is, unique within the tenant; for logs and records
	Tenant  id.Tenant
	Roles   []Role    // never modified
	Expires time.Time // when the credential ends, for a JWT with the leeway; zero = never

	credential credential
}

// Has reports whether the principal has the role.
func (p Principal) Has(r Role) bool { return slices.Contains(p.Roles, r) }

// MayAct reports whether the principal may change anything: say something, answer,
// stop what runs. Who may act may watch.
func (p Principal) MayAct() bool { return p.Has(RoleUser) || p.Has(RoleOperator) }

// MayWatch reports whether the principal may see what there is in its tenant.
func (p Principal) MayWatch() bool { return p.MayAct() || p.Has(RoleViewer) }

// Owns reports whether the log is of the principal's tenant. It is asked before every
// access to a log; whether the principal may change it MayAct says. The zero Principal
// owns nothing.
func (p Principal) Owns(l subject.Log) bool {
	return !p.Tenant.IsZero() && p.Tenant == l.Tenant
}

// Authenticator turns tokens into principals. Implementations are safe for
// concurrent use.
type Authenticator interface {
	// Authenticate returns the principal of the token. The error is a *fault.Fault:
	// fault.Unauthenticated or fault.Expired when the token is not good, and the
	// retryable fault.Internal when that cannot be found out now (the issuer's keys
	// cannot be fetched, or ctx ended). Neither holds the token.
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// Revoker is implemented by Authenticators whose credentials can be withdrawn
// before they expire. Holders of long connections ask it every few seconds.
type Revoker interface {
	// Revoked reports whether the credential behind p is good no longer. It does
	// not look at p.Expires, does not use the network and is safe for concurrent use.
	Revoked(p Principal) bool
}

// credential says what a principal was made from, for Revoked. It holds nothing
// secret.
type credential struct {
	key    string   // id of the API key
	digest [32]byte // of the API key, or of what the configuration says of JWTs
	issuer string   // of the JWT
	signer thumbprint
}

// known returns those of the names that are roles.
func known(names []string) []Role {
	var out []Role
	for _, n := range names {
		if r := Role(n); slices.Contains(roles, r) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}
