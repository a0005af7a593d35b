package own

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

const (
	// stateKeyName is the key file that "waggle up" makes in its data folder.
	stateKeyName = "state.key"
	// stateKeyBytes is the size of the key of HMAC-SHA256.
	stateKeyBytes = 32
)

// StateKeys returns the keys of exported states, the signing key first. Without keys the process neither exports nor imports
// states. A process with its own bus creates a key if none is set.
func StateKeys(c config.Config, embedded bool) ([][]byte, error) {
	keys := c.Session.StateKeys
	switch file := c.Session.StateKeyFile; {
	case file != "":
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, fmt.Errorf("session.state_key_file: %w", err)
		}
		if keys, err = parseStateKeys(string(text)); err != nil {
			return nil, fmt.Errorf("session.state_key_file: %s: %w", file, err)
		}
	case len(keys) == 0 && embedded:
		var err error
		if keys, err = ownStateKeys(filepath.Join(c.Data, stateKeyName)); err != nil {
			return nil, err
		}
	}
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = []byte(k.Reveal())
	}
	return out, nil
}

func parseStateKeys(text string) ([]config.Secret, error) {
	var keys []config.Secret
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			keys = append(keys, config.Secret(line))
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the file holds no key")
	}
	return keys, config.CheckStateKeys(keys)
}

// ownStateKeys reads the key file of the data folder, and creates it at the first start. The caller owns the folder, so no
// other process creates the file meanwhile.
func ownStateKeys(name string) ([]config.Secret, error) {
	text, err := os.ReadFile(filepath.Clean(name))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newStateKey(name)
	}
	if err != nil {
		return nil, fmt.Errorf("key of exported states: %w", err)
	}
	keys, err := parseStateKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("key of exported states: %s: %w", name, err)
	}
	return keys, nil
}

// newStateKey creates the file in one step, so that no crash leaves half a key.
func newStateKey(name string) ([]byte, error) {
	key := make([]byte, stateKeyBytes)
	_, _ = rand.Read(key) // never fails
	text := []byte(hex.EncodeToString(key) + "\n")
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return nil, err
	}
	return text, os.Rename(name+".new", name)
}
