package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/signature"
)

// signing holds the keys with which gateways sign the commands of clients and services verify them.
type signing struct {
	signer   *signature.Signer // of the role gateway
	verifier *signature.Verifier

	mu     sync.Mutex
	cfg    config.Signing
	seed   string   // in use
	public []string // accepted

	version int // counts the changes of either
}

// openSigning reads the keys. A process with its own bus makes a key if none is set.
func (p *process) openSigning() error {
	c, err := withOwnSigning(p.Config)
	if err != nil {
		return err
	}
	if p.Use.Embedded && c.KeyFile == "" {
		if _, err := keys.EnsureSigning(KeyFolder(p.Config)); err != nil {
			return err
		}
		c.KeyFile = keys.SigningFile(KeyFolder(p.Config))
	}
	p.signing = &signing{cfg: c, verifier: &signature.Verifier{}}
	if p.Use.Has(config.RoleGateway) {
		if c.KeyFile == "" {
			return errors.New("signing.key_file: a gateway needs the key that signs the commands of its clients; " +
				"\"waggle keys\" makes it as signing.seed, and the environment names it as WAGGLE_SIGNING_KEY_FILE")
		}
		seed, err := readSeed(c.KeyFile)
		if err != nil {
			return err
		}
		if p.signing.signer, err = signature.NewSigner([]byte(seed), p.now); err != nil {
			return fmt.Errorf("signing.key_file: %s: %w", c.KeyFile, err)
		}
	}
	return p.signing.look()
}

// withOwnSigning adds the keys from the data folder where withOwnKey adds the credentials for the bus: to a process beside a
// running "waggle up".
func withOwnSigning(c config.Config) (config.Signing, error) {
	s := c.Signing
	if s.KeyFile != "" || s.PublicKeyFile != "" || len(s.PublicKeys) > 0 {
		return s, nil
	}
	n, err := withOwnKey(c, "")
	if err == nil && n.NKey != c.NATS.NKey {
		s.KeyFile, s.PublicKeyFile = keys.SigningFile(KeyFolder(c)), keys.SigningPublicFile(KeyFolder(c))
	}
	return s, err
}

// look reads the files again and uses the keys that have changed.
func (s *signing) look() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(s.cfg)
}

// state returns the version of the keys, and the accepted public keys.
func (s *signing) state() (version int, public []string) {
	if s == nil {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, slices.Clone(s.public)
}

// configure is look with other settings. After an error the earlier settings stay.
func (s *signing) configure(c config.Signing) error {
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

func (s *signing) read(c config.Signing) error {
	public, err := acceptedKeys(c)
	if err != nil {
		return err
	}
	if s.signer != nil {
		seed, err := readSeed(c.KeyFile)
		if err != nil {
			return err
		}
		if seed != s.seed {
			if err := s.signer.Replace([]byte(seed)); err != nil {
				return fmt.Errorf("signing.key_file: %s: %w", c.KeyFile, err)
			}
			s.seed = seed
			s.version++
		}
		own, err := s.signer.Public()
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
	if err := s.verifier.Replace(public...); err != nil {
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
