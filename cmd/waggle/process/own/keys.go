// Package own stores the files that a process with an embedded bus shares with local commands: keys, tokens and the address of the bus,
// each a file of the data folder.
package own

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/bus/embedded"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// urlFile returns the file that names the running server which knows the keys.
func urlFile(c config.Config) string { return filepath.Join(KeyFolder(c), "url") }

// KeyFolder returns the folder with the keys of the embedded NATS server, one seed file for each role.
func KeyFolder(c config.Config) string { return filepath.Join(c.Data, "nats-keys") }

// EveryRole names the key of processes with several roles.
const EveryRole permission.Role = "all"

// Users returns the users of the embedded server, whose keys are in the data folder: one for each role, and one that has all
// permissions.
func Users(c config.Config) ([]embedded.User, error) {
	dir := KeyFolder(c)
	var all []embedded.User
	add := func(role permission.Role, list *permission.List) error {
		key, err := keys.EnsureSeed(dir, role)
		all = append(all, embedded.User{Key: key, List: list})
		return err
	}
	for _, list := range permission.All(c.Partitions()) {
		if err := add(list.Role, &list); err != nil {
			return nil, fmt.Errorf("keys of the embedded NATS server: %w", err)
		}
	}
	if err := add(EveryRole, nil); err != nil {
		return nil, fmt.Errorf("keys of the embedded NATS server: %w", err)
	}
	return all, nil
}

// TellURL writes the server's address next to the keys, atomically. It is removed when the server ends.
func TellURL(c config.Config, at string) (forget func(), err error) {
	name := urlFile(c)
	forget = func() { _ = os.Remove(name) }
	if err := os.WriteFile(name+".new", []byte(at+"\n"), 0o600); err != nil {
		return forget, err
	}
	return forget, os.Rename(name+".new", name)
}

// WithKey adds the role's key from the data folder if the configuration has no credentials and names the server that the
// keys belong to: commands on the machine of a "waggle up" need no setting then.
func WithKey(c config.Config, as permission.Role) (config.NATS, error) {
	n := c.NATS
	if n.NKey != "" || n.Creds != "" {
		return n, nil
	}
	at, err := os.ReadFile(urlFile(c))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return n, nil // the server is not that of this folder, or not this user's
	}
	if err != nil {
		return n, fmt.Errorf("keys of the embedded NATS server: %w", err)
	}
	if sameServer(cmp.Or(n.URL, nats.DefaultURL), strings.TrimSpace(string(at))) {
		n.NKey = keys.SeedFile(KeyFolder(c), cmp.Or(as, EveryRole))
	}
	return n, nil
}

// Beside reports whether the process runs beside a "waggle up", whose key WithKey takes.
func Beside(c config.Config) bool {
	n, err := WithKey(c, "")
	return err == nil && n.NKey != c.NATS.NKey
}

// sameServer reports whether both URLs name one server of this machine.
func sameServer(a, b string) bool {
	return a == b || local(a) != "" && local(a) == local(b)
}

// local returns the port of a server of this machine, or nothing.
func local(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	return u.Port()
}

// Signing returns the settings of the keys that sign and verify commands. A process with its own bus makes a key if none is set.
func Signing(c config.Config, embedded bool) (config.Signing, error) {
	s := c.Signing
	switch {
	case !embedded:
		return withSigning(c), nil
	case s.KeyFile == "":
		if _, err := keys.EnsureSigning(KeyFolder(c)); err != nil {
			return s, err
		}
		s.KeyFile = keys.SigningFile(KeyFolder(c))
		if s.PublicKeyFile == "" && len(s.PublicKeys) == 0 {
			s.PublicKeyFile = keys.SigningPublicFile(KeyFolder(c))
		}
	}
	return s, nil
}

// withSigning adds the keys from the data folder where WithKey adds the credentials for the bus: to a process beside a
// running "waggle up".
func withSigning(c config.Config) config.Signing {
	s := c.Signing
	if s.KeyFile != "" || s.PublicKeyFile != "" || len(s.PublicKeys) > 0 {
		return s
	}
	if Beside(c) {
		s.KeyFile, s.PublicKeyFile = keys.SigningFile(KeyFolder(c)), keys.SigningPublicFile(KeyFolder(c))
	}
	return s
}
