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
	// passwordBytes make guessing the password between the servers infeasible.
	passwordBytes = 24
	// routesPort is the port of the routes between the servers of deploy/nats.
	routesPort = 6222
)

// RoutesFile returns the file by which the servers of a cluster find each other.
func RoutesFile(dir string) string { return filepath.Join(dir, "routes.conf") }

// EnsureRoutes writes the file that cluster.conf includes: the names of the servers and their common password. It keeps an
// existing file.
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
			return fmt.Errorf("%q is not a server name", s)
		}
		fmt.Fprintf(&b, "  \"nats-route://waggle:%s@%s:%d\"\n", password, s, routesPort)
	}
	b.WriteString("]\n")
	if err := os.WriteFile(RoutesFile(dir), []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the routes: %w", err)
	}
	return nil
}
