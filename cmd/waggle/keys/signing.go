package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/waggle-dev/waggle/internal/signature"
)

// Files of the signing keys in the folder of the keys.
const (
	signingSeed = "signing.seed"      // signs the commands of clients
	signingNext = "signing.next.seed" // will sign them after a switch
	signingOld  = "signing.old.pub"   // signed them before the last switch
	signingPub  = "signing.pub"       // accepted public keys, one a line
)

// Steps of a rotation of the signing key, in their order.
const (
	SigningAdd    = "add"    // services accept the next key, too
	SigningSwitch = "switch" // gateways sign with the next key
	SigningDrop   = "drop"   // services no longer accept the key before it
)

// SigningFile returns the file with the seed that gateways sign commands with.
func SigningFile(dir string) string { return filepath.Join(dir, signingSeed) }

// SigningPublicFile returns the file with the public keys that services accept.
func SigningPublicFile(dir string) string { return filepath.Join(dir, signingPub) }

// EnsureSigning creates the key that gateways sign commands with unless it exists, and rewrites the file of the accepted
// public keys.
func EnsureSigning(dir string) (made bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("make the folder of the keys: %w", err)
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return false, fmt.Errorf("signing key: %w", err)
	}
	defer folder.Close()
	if made, err = newSigning(folder, signingSeed); err != nil {
		return made, fmt.Errorf("signing key: %w", err)
	}
	return made, writeSigning(folder)
}

// RotateSigning carries out one step of a rotation. A repeat of a step changes nothing.
func RotateSigning(dir, step string) error {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("rotate the signing key: %w", err)
	}
	defer folder.Close()
	switch step {
	case SigningAdd:
		_, err = newSigning(folder, signingNext)
	case SigningSwitch:
		err = switchSigning(folder)
	case SigningDrop:
		if err = folder.Remove(signingOld); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	default:
		return fmt.Errorf("unknown rotation step %q; use add, switch or drop", step)
	}
	if err != nil {
		return fmt.Errorf("rotate the signing key: %w", err)
	}
	return writeSigning(folder)
}

// switchSigning makes the next key the current one, and keeps the public key of the current one.
func switchSigning(folder *os.Root) error {
	if _, err := folder.Stat(signingNext); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	public, err := signingPublic(folder, signingSeed)
	if err != nil {
		return err
	}
	if err := replace(folder, signingOld, public+"\n"); err != nil {
		return err
	}
	return folder.Rename(signingNext, signingSeed)
}

// writeSigning writes the accepted public keys: the current one first.
func writeSigning(folder *os.Root) error {
	var out strings.Builder
	for _, name := range []string{signingSeed, signingNext} {
		public, err := signingPublic(folder, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		out.WriteString(public + "\n")
	}
	old, err := folder.ReadFile(signingOld)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(folder, signingPub, out.String()+string(old))
}

// replace writes a file in one step, so that no reader sees half of it.
func replace(folder *os.Root, name, text string) error {
	if err := folder.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return folder.Rename(name+".new", name)
}

// newSigning creates a seed unless the file exists.
func newSigning(folder *os.Root, name string) (made bool, err error) {
	if _, err := folder.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	pair, err := nkeys.CreatePair(signature.Prefix)
	if err != nil {
		return false, err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return false, err
	}
	return true, replace(folder, name, string(seed)+"\n")
}

// signingPublic returns the public key of the seed in the file.
func signingPublic(folder *os.Root, name string) (string, error) {
	seed, err := folder.ReadFile(name)
	if err != nil {
		return "", err
	}
	s, err := signature.NewSigner(bytes.TrimSpace(seed), nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return s.Public()
}
