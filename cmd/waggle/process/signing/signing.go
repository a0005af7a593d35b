// Package signing holds the keys with which gateways sign the commands of clients and services verify them, as the settings of
// a process name them.
package signing

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/signature"
)

// Keys are the keys in use.
type Keys struct {
	Signer   *signature.Signer // of the role gateway; nil without it
	Verifier *signature.Verifier

	mu     sync.Mutex
	cfg    config.Signing
	seed   string   // in use
	public []string // accepted

	version int // counts the changes of either
}

// Open reads the keys that the settings name. A gateway also needs the key that signs.
func Open(c config.Signing, gateway bool, now func() time.Time) (*Keys, error) {
	s := &Keys{cfg: c, Verifier: &signature.Verifier{}}
	if gateway {
		if c.KeyFile == "" {
			return nil, errors.New("signing.key_file: a gateway needs the key that signs the commands of its clients; " +
				"\"waggle keys\" makes it as signing.seed, and the environment names it as WAGGLE_SIGNING_KEY_FILE")
		}
		seed, err := readSeed(c.KeyFile)
		if err != nil {
			return nil, err
		}
		if s.Signer, err = signature.NewSigner([]byte(seed), now); err != nil {
			return nil, fmt.Errorf("signing.key_file: %s: %w", c.KeyFile, err)
		}
	}
	return s, s.Look()
}

// Look reads the files again and uses the keys that have changed.
func (s *Keys) Look() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(s.cfg)
}

// State returns the version of the keys, and the accepted public keys.
func (s *Keys) State() (version int, public []string) {
	if s == nil {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, slices.Clone(s.public)
}

// Configure is Look with other settings. After an error the earlier settings stay.
func (s *Keys) Configure(c config.Signing) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.KeyFile == "" && c.PublicKeyFile == "" && len(c.PublicKeys) == 0 {
		return s.read(s.cfg) // those of the data folder
	}
	if err := s.read(c); err != nil {
		return err
	}
	s.cfg = c
	return nil
}

func (s *Keys) read(c config.Signing) error {
	public, err := acceptedKeys(c)
	if err != nil {
		return err
	}
	if s.Signer != nil {
		seed, err := readSeed(c.KeyFile)
		if err != nil {
			return err
		}
		if seed != s.seed {
			if err := s.Signer.Replace([]byte(seed)); err != nil {
				return fmt.Errorf("signing.key_file: %s: %w", c.KeyFile, err)
			}
			s.seed = seed
			s.version++
		}
		own, err := s.Signer.Public()
		if err != nil {
			return err
		}
		public = append(public, own)
	}
	if len(public) == 0 {
		return errors.New("signing.public_key_file: the process needs the public keys of the gateways, or it would have to refuse " +
			"every command of a person; \"waggle keys\" writes them to signing.pub, and the environment names it as WAGGLE_SIGNING_PUBLIC_KEY_FILE")
	}
	if slices.Equal(public, s.public) {
		return nil
	}
	if err := s.Verifier.Replace(public...); err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	s.public = public
	s.version++
	return nil
}

// acceptedKeys returns the configured public keys.
func acceptedKeys(c config.Signing) ([]string, error) {
	public := slices.Clone(c.PublicKeys)
	if c.PublicKeyFile == "" {
		return public, nil
	}
	text, err := os.ReadFile(filepath.Clean(c.PublicKeyFile))
	if err != nil {
		return nil, fmt.Errorf("signing.public_key_file: %w", err)
	}
	return append(public, strings.Fields(string(text))...), nil
}

func readSeed(file string) (string, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return "", fmt.Errorf("signing.key_file: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
