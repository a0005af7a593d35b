package own

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

// startTokenBytes makes the token as hard to guess as a key.
const startTokenBytes = 32

func startTokenFile(c config.Config) string { return filepath.Join(c.Data, "start.token") }

// StartToken returns the start token of the process that uses the data folder.
func StartToken(c config.Config) (string, error) {
	text, err := os.ReadFile(startTokenFile(c))
	if err != nil {
		return "", fmt.Errorf("no start token: only a running \"waggle up\" without authentication has one: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// NewStartToken makes the token with which pages of any origin may use a gateway without authentication; one with authentication
// has none. A process with a data folder keeps it there until it is forgotten.
func NewStartToken(c config.Config, embedded bool) (token string, forget func(), err error) {
	forget = func() {}
	if !c.Auth.Empty() {
		return "", forget, nil
	}
	random := make([]byte, startTokenBytes)
	_, _ = rand.Read(random) // never fails
	token = hex.EncodeToString(random)
	if !embedded {
		return token, forget, nil
	}
	name := startTokenFile(c)
	if err := os.WriteFile(name+".new", []byte(token+"\n"), 0o600); err != nil {
		return "", forget, fmt.Errorf("start token: %w", err)
	}
	return token, func() { _ = os.Remove(name) }, os.Rename(name+".new", name)
}
