package keys

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// passwordBytes make guessing the password between the servers hopeless.
	passwordBytes = 24
	// routesPort is where the servers of deploy/nats listen for each other.
	routesPort = 6222
)

// RoutesFile returns the file with which the servers of a cluster know each other.
func RoutesFile(dir string) string { return filepath.Join(dir, "routes.conf") }

// EnsureRoutes writes the file that cluster.conf includes: the names of the servers and
// a password that they have in common. One that is there is kept.
func EnsureRoutes(dir string, servers []string) error {
	if _, err := os.Stat(RoutesFile(dir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	secret := make([]byte, passwordBytes)
	_, _ = rand.Read(secret) // never fails
	password := hex.EncodeToString(secret)
	var b strings.Builder
	fmt.Fprintf(&b, "authorization { user: waggle, password: %q }\nroutes: [\n", password)
	for _, s := range servers {
		if s == "" || strings.ContainsAny(s, "/@:\" \t\r\n") {
			return fmt.Errorf("%q is no name of a server", s)
		}
		fmt.Fprintf(&b, "  \"nats-route://waggle:%s@%s:%d\"\n", password, s, routesPort)
	}
	b.WriteString("]\n")
	if err := os.WriteFile(RoutesFile(dir), []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the routes: %w", err)
	}
	return nil
}
