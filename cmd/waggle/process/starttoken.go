package process

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

// startToken makes the token with which pages of any origin may use a gateway without authentication. A process with a data
// folder keeps it there as long as it runs.
func (p *process) startToken() (string, error) {
	if !p.Config.Auth.Empty() {
		return "", nil
	}
	random := make([]byte, startTokenBytes)
	_, _ = rand.Read(random) // never fails
	token := hex.EncodeToString(random)
	p.running.StartToken = token
	if !p.Use.Embedded {
		return token, nil
	}
	name := startTokenFile(p.Config)
	if err := os.WriteFile(name+".new", []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("start token: %w", err)
	}
	p.closers = append(p.closers, func() { _ = os.Remove(name) })
	return token, os.Rename(name+".new", name)
}
