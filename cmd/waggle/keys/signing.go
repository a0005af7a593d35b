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
	if made, err = newSigning(SigningFile(dir)); err != nil {
		return made, fmt.Errorf("signing key: %w", err)
	}
	return made, writeSigning(dir)
}

// RotateSigning carries out one step of a rotation. A repeat of a step changes nothing.
func RotateSigning(dir, step string) error {
	next, old := filepath.Join(dir, signingNext), filepath.Join(dir, signingOld)
	var err error
	switch step {
	case SigningAdd:
		_, err = newSigning(next)
	case SigningSwitch:
		err = switchSigning(dir, next, old)
	case SigningDrop:
		if err = os.Remove(old); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	default:
		return fmt.Errorf("unknown step %q of a rotation; the steps are add, switch and drop", step)
	}
	if err != nil {
		return fmt.Errorf("rotate the signing key: %w", err)
	}
	return writeSigning(dir)
}

// switchSigning makes the next key the current one, and keeps the public key of the current one.
func switchSigning(dir, next, old string) error {
	if _, err := os.Stat(next); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	public, err := signingPublic(SigningFile(dir))
	if err != nil {
		return err
	}
	if err := replace(old, public+"\n"); err != nil {
		return err
	}
	return os.Rename(next, SigningFile(dir))
}

// writeSigning writes the accepted public keys: the current one first.
func writeSigning(dir string) error {
	var out strings.Builder
	for _, name := range []string{signingSeed, signingNext} {
		public, err := signingPublic(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		out.WriteString(public + "\n")
	}
	old, err := os.ReadFile(filepath.Clean(filepath.Join(dir, signingOld)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(SigningPublicFile(dir), out.String()+string(old))
}

// replace writes a file in one step, so that no reader sees half of it.
func replace(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// newSigning creates a seed unless the file exists.
func newSigning(file string) (made bool, err error) {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
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
	return true, replace(file, string(seed)+"\n")
}

// signingPublic returns the public key of the seed in the file.
func signingPublic(file string) (string, error) {
	seed, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return "", err
	}
	s, err := signature.NewSigner(bytes.TrimSpace(seed), nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return s.Public()
}
