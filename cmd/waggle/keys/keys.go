// Package keys makes the nkeys of a fleet: one for each role. A seed stays with the
// processes of its role; the NATS servers get the public keys.
package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// SeedFile returns the file that holds the seed of a role's key.
func SeedFile(dir string, role permission.Role) string {
	return filepath.Join(dir, string(role)+".nk")
}

// PublicFile returns the file that holds the public keys of all roles, as lines of an
// environment: NAME=KEY.
func PublicFile(dir string) string { return filepath.Join(dir, "nkeys.env") }

// Roles returns every role that has a key.
func Roles() []permission.Role {
	var out []permission.Role
	for _, l := range permission.All() {
		out = append(out, l.Role)
	}
	return append(out, permission.System)
}

// Ensure makes the keys that the folder does not have, each seed in a file that only
// its owner may read, and writes their public parts anew. It returns the roles for
// which it made a key. Keys that are there are never replaced: removing a file is how a
// key is changed.
func Ensure(dir string) (made []permission.Role, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the keys: %w", err)
	}
	var public bytes.Buffer
	for _, role := range Roles() {
		key, fresh, err := ensure(SeedFile(dir, role))
		if err != nil {
			return made, fmt.Errorf("key of %s: %w", role, err)
		}
		if fresh {
			made = append(made, role)
		}
		fmt.Fprintf(&public, "%s=%s\n", permission.Variable(role), key)
	}
	if err := os.WriteFile(PublicFile(dir), public.Bytes(), 0o600); err != nil {
		return made, fmt.Errorf("write the public keys: %w", err)
	}
	return made, nil
}

// ensure returns the public key of the seed in the file, which it makes if need be.
func ensure(file string) (public string, fresh bool, err error) {
	seed, err := os.ReadFile(filepath.Clean(file))
	var pair nkeys.KeyPair
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fresh = true
		if pair, err = create(file); err != nil {
			return "", false, err
		}
	case err != nil:
		return "", false, err
	default:
		if pair, err = nkeys.ParseDecoratedUserNKey(seed); err != nil {
			return "", false, fmt.Errorf("%s holds no seed of a user: %w", file, err)
		}
	}
	defer pair.Wipe()
	public, err = pair.PublicKey()
	return public, fresh, err
}

// create writes a new seed. A file that somebody else makes meanwhile is an error.
func create(file string) (nkeys.KeyPair, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(seed, '\n'))
	return pair, errors.Join(err, f.Close())
}
