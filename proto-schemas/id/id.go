// Package id holds the validated identifier types of Waggle.
//
// Only constructors that check their input make values of these types, so code may put a value into a NATS subject, a
// KV key or a header without a further check. A string from a client becomes a subject token only through these
// constructors.
package id

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

const (
	// maxToken is the longest subject token: generous for UUIDs and human
	// names, short enough that a subject stays far below the NATS limit of 4 KB.
	maxToken = 64
	// maxEntity is longer because dialects let clients choose ids of 128 bytes.
	maxEntity = 128
	// hashPrefix marks a token that stands for an external id which is not a legal token itself.
	hashPrefix = "h_"
)

// ErrInvalid is wrapped by every error of this package.
var ErrInvalid = errors.New("invalid identifier")

// Tenant names one isolated customer of an installation. It is always assigned
// by the server (from the authenticated principal), never by a message.
type Tenant struct{ v string }

// Entity names one log: a session, task, agent or team within a tenant.
type Entity struct{ v string }

// Name is a short token chosen by this program or its configuration: a service,
// a verb, an instance or a timer name.
type Name struct{ v string }

// Kind is the class of an entity.
type Kind string

// The kinds of entity that have a log.
const (
	KindSession Kind = "session"
	KindTask    Kind = "task"
	KindMember  Kind = "member"
	KindTeam    Kind = "team"
	KindInbox   Kind = "inbox" // the inbox of a client of the swarm
	KindCall    Kind = "call"  // a tool call of a participant of the swarm: the whole log of a call outside of tasks, the claim of one within
)

// DefaultTenant is the tenant of installations without authentication.
var DefaultTenant = Tenant{"default"}

// ParseTenant returns s as a Tenant, or an error that wraps ErrInvalid unless s
// matches [A-Za-z0-9_-]{1,64}.
func ParseTenant(s string) (Tenant, error) {
	if err := check("tenant", s, maxToken); err != nil {
		return Tenant{}, err
	}
	return Tenant{s}, nil
}

// ParseEntity returns s as an Entity, or an error that wraps ErrInvalid unless s
// matches [A-Za-z0-9_-]{1,128}.
func ParseEntity(s string) (Entity, error) {
	if err := check("id", s, maxEntity); err != nil {
		return Entity{}, err
	}
	return Entity{s}, nil
}

// EntityFromExternal maps any id of a client to an Entity: a legal id maps to itself, anything else to a hash token.
// The mapping is injective up to SHA-256 collisions; the caller keeps the original in the payload.
func EntityFromExternal(s string) Entity {
	if check("id", s, maxEntity) == nil && !strings.HasPrefix(s, hashPrefix) {
		return Entity{s}
	}
	sum := sha256.Sum256([]byte(s))
	return Entity{hashPrefix + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])}
}

// Hashed reports whether the entity stands for an external id that is not a legal token itself.
func Hashed(e Entity) bool { return strings.HasPrefix(e.v, hashPrefix) }

// The marks of the ids of members: <team>-a<hash> and <team>-t<hash>.
const (
	markAgent = "-a"
	markTeam  = "-t"
	// memberHash is the number of characters of a name's hash in an id: 50 bits, so that eight nested teams and an
	// agent still have legal ids.
	memberHash = 10
	memberLen  = len(markAgent) + memberHash
)

// MemberAgent returns the id of the agent that is the team's member of that name. It is a pure function of team and
// name.
func MemberAgent(team Entity, name string) (Entity, error) { return member(team, markAgent, name) }

// MemberTeam returns the id of the nested team that is the team's member of that name.
func MemberTeam(team Entity, name string) (Entity, error) { return member(team, markTeam, name) }

func member(team Entity, mark, name string) (Entity, error) {
	sum := sha256.Sum256([]byte(name))
	hash := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))
	return ParseEntity(team.v + mark + hash[:memberHash])
}

// TeamOf returns the team whose member has the id, an agent's or a nested team's. ok
// is false for any other id.
func TeamOf(member Entity) (team Entity, ok bool) {
	cut := len(member.v) - memberLen
	if cut <= 0 {
		return Entity{}, false
	}
	if mark := member.v[cut : cut+len(markAgent)]; mark != markAgent && mark != markTeam {
		return Entity{}, false
	}
	return Entity{member.v[:cut]}, true
}

// ParseName returns s as a Name, or an error that wraps ErrInvalid unless s
// matches [A-Za-z0-9_-]{1,64}.
func ParseName(s string) (Name, error) {
	if err := check("name", s, maxToken); err != nil {
		return Name{}, err
	}
	return Name{s}, nil
}

// MustName is ParseName for constants of the program. It panics on a bad name.
func MustName(s string) Name {
	n, err := ParseName(s)
	if err != nil {
		panic(err)
	}
	return n
}

// ParseKind returns s as a Kind, or an error that wraps ErrInvalid for an unknown kind.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case KindSession, KindTask, KindMember, KindTeam, KindInbox, KindCall:
		return k, nil
	}
	return "", fmt.Errorf("%w: unknown kind %q", ErrInvalid, clip(s))
}

// String returns the token.
func (t Tenant) String() string { return t.v }

// IsZero reports whether t was never set.
func (t Tenant) IsZero() bool { return t.v == "" }

// MarshalText implements encoding.TextMarshaler.
func (t Tenant) MarshalText() ([]byte, error) { return []byte(t.v), nil }

// UnmarshalText implements encoding.TextUnmarshaler and validates.
func (t *Tenant) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTenant(string(b))
	return err
}

// String returns the token.
func (e Entity) String() string { return e.v }

// IsZero reports whether e was never set.
func (e Entity) IsZero() bool { return e.v == "" }

// MarshalText implements encoding.TextMarshaler.
func (e Entity) MarshalText() ([]byte, error) { return []byte(e.v), nil }

// UnmarshalText implements encoding.TextUnmarshaler and validates.
func (e *Entity) UnmarshalText(b []byte) (err error) {
	*e, err = ParseEntity(string(b))
	return err
}

// String returns the token.
func (n Name) String() string { return n.v }

// IsZero reports whether n was never set.
func (n Name) IsZero() bool { return n.v == "" }

// MarshalText implements encoding.TextMarshaler.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.v), nil }

// UnmarshalText implements encoding.TextUnmarshaler and validates.
func (n *Name) UnmarshalText(b []byte) (err error) {
	*n, err = ParseName(string(b))
	return err
}

// check accepts [A-Za-z0-9_-]{1,limit}. NATS itself would store '*', '>', NUL and extra dots under their literal
// names, so check refuses all other characters.
func check(what, s string, limit int) error {
	if s == "" {
		return fmt.Errorf("%w: %s is empty", ErrInvalid, what)
	}
	if len(s) > limit {
		return fmt.Errorf("%w: %s is longer than %d bytes", ErrInvalid, what, limit)
	}
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return fmt.Errorf("%w: %s %q has a character outside A-Z a-z 0-9 _ -", ErrInvalid, what, clip(s))
		}
	}
	return nil
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}
