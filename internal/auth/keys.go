package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// keyring holds the principals of the API keys, each with its digest.
type keyring []Principal

func newKeyring(keys []APIKey) (keyring, error) {
	var ring keyring
	for i, k := range keys {
		p, err := k.principal()
		if err != nil {
			return nil, fmt.Errorf("auth.api_keys[%d].%w", i, err)
		}
		for _, other := range ring {
			if other.credential.key == k.ID {
				return nil, fmt.Errorf("auth.api_keys[%d].id: %q occurs twice", i, k.ID)
			}
			if other.credential.digest == p.credential.digest {
				return nil, fmt.Errorf("auth.api_keys[%d].sha256: the same key as %q", i, other.credential.key)
			}
		}
		ring = append(ring, p)
	}
	return ring, nil
}

// principal checks k. The error begins with the name of the field.
func (k APIKey) principal() (Principal, error) {
	if _, err := id.ParseName(k.ID); err != nil {
		return Principal{}, fmt.Errorf("id: %w", err)
	}
	p := Principal{Subject: k.Subject, Roles: slices.Clone(k.Roles), Expires: k.Expires}
	p.credential.key = k.ID
	if p.Subject == "" {
		p.Subject = k.ID
	}
	if err := checkSubject(p.Subject); err != nil {
		return Principal{}, fmt.Errorf("subject: %w", err)
	}
	digest, err := hex.DecodeString(k.SHA256)
	if err != nil || len(digest) != sha256.Size || k.SHA256 == HashKey("") {
		// Not quoted: the field may contain the key itself by mistake.
		return Principal{}, fmt.Errorf("sha256: want the SHA-256 of a key, %d hex digits", hex.EncodedLen(sha256.Size))
	}
	p.credential.digest = [sha256.Size]byte(digest)
	if p.Tenant, err = id.ParseTenant(k.Tenant); err != nil {
		return Principal{}, fmt.Errorf("tenant: %w", err)
	}
	for _, r := range p.Roles {
		if !slices.Contains(roles, r) {
			return Principal{}, fmt.Errorf("roles: %q is not one of %q", r, roles)
		}
	}
	if len(p.Roles) == 0 {
		p.Roles = []Role{RoleUser}
	}
	return p, nil
}

// find compares every key, so that its duration does not reveal anything about a key.
func (r keyring) find(token string) (Principal, bool) {
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range r {
		equal := subtle.ConstantTimeCompare(digest[:], r[i].credential.digest[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return Principal{}, false
	}
	return r[found], true
}

// holds reports whether the ring still produces p.
func (r keyring) holds(p Principal) bool {
	return slices.ContainsFunc(r, func(q Principal) bool {
		return q.credential == p.credential && q.Subject == p.Subject && q.Tenant == p.Tenant &&
			slices.Equal(q.Roles, p.Roles) && q.Expires.Equal(p.Expires)
	})
}

// APIKey is one static key.
type APIKey struct {
	ID      string    // names the key in logs: a token as in id.ParseName, unique
	SHA256  string    // HashKey of the key
	Subject string    // principal that holds the key; default: the ID
	Tenant  string    // required
	Roles   []Role    // default: user
	Expires time.Time // zero = never
}
