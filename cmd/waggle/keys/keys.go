// Package keys creates the nkeys of a fleet: one for each role, and the one that signs the commands of clients. A seed stays with the processes of its role; the NATS
// servers get the public keys.
package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// SeedFile returns the file that holds the seed of a role's key.
func SeedFile(dir string, role permission.Role) string {
	return filepath.Join(dir, string(role)+".nk")
}

// PublicFile returns the file that holds the public keys of all roles, as lines of an
// environment: NAME=KEY.
func PublicFile(dir string) string { return filepath.Join(dir, "nkeys.env") }

// AccountsFile returns the file with the users of an installation and their permissions, which the NATS servers include.
func AccountsFile(dir string) string { return filepath.Join(dir, "accounts.conf") }

// WriteAccounts writes the accounts file of an installation with n partitions.
func WriteAccounts(dir string, n subject.Partitions) error {
	if err := os.WriteFile(AccountsFile(dir), []byte(permission.Accounts(n)), 0o600); err != nil {
		return fmt.Errorf("write the users of the NATS servers: %w", err)
	}
	return nil
}

// Roles returns every role that has a key.
func Roles() []permission.Role {
	var out []permission.Role
	for _, l := range permission.All(subject.DefaultPartitions) {
		out = append(out, l.Role)
	}
	return append(out, permission.System)
}

// EnsureSeed returns the public key of a role, and creates its seed in the folder if that is missing.
func EnsureSeed(dir string, role permission.Role) (public string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the keys: %w", err)
	}
	public, _, err = ensure(SeedFile(dir, role))
	if err != nil {
		return "", fmt.Errorf("key of %s: %w", role, err)
	}
	return public, nil
}

// Ensure creates the missing keys of the folder, each seed in a file that only its owner may read, and rewrites the file of
// public keys. It returns the roles of the new keys. It never replaces an existing key: remove a file to change its key.
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
	_, err = EnsureSigning(dir)
	return made, err
}

// ensure returns the public key of the seed in the file, and creates a missing seed.
func ensure(file string) (public string, fresh bool, err error) {
	pair, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		fresh = true
		pair, err = create(file)
	}
	if err != nil {
		return "", false, err
	}
	defer pair.Wipe()
	public, err = pair.PublicKey()
	return public, fresh, err
}

// read returns the key whose seed is in the file.
func read(file string) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.ParseDecoratedUserNKey(seed)
	if err != nil {
		return nil, fmt.Errorf("%s does not contain a user seed: %w", file, err)
	}
	return pair, nil
}

// create writes a new seed. It fails if another process creates the file meanwhile.
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
