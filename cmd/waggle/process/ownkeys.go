package process

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
	"github.com/waggle-dev/waggle/cmd/waggle/process/signing"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// urlFile returns the file that names the running server which knows the keys.
func urlFile(c config.Config) string { return filepath.Join(KeyFolder(c), "url") }

// KeyFolder returns the folder with the keys of the embedded NATS server, one seed file for each role.
func KeyFolder(c config.Config) string { return filepath.Join(c.Data, "nats-keys") }

// everyRole names the key of processes with several roles.
const everyRole permission.Role = "all"

// users returns the users of the embedded server, whose keys are in the data folder: one for each role, and one that has all
// permissions.
func users(c config.Config) ([]bus.User, error) {
	dir := KeyFolder(c)
	var all []bus.User
	add := func(role permission.Role, list *permission.List) error {
		key, err := keys.EnsureSeed(dir, role)
		all = append(all, bus.User{Key: key, List: list})
		return err
	}
	for _, list := range permission.All(partitions(c)) {
		if err := add(list.Role, &list); err != nil {
			return nil, fmt.Errorf("keys of the embedded NATS server: %w", err)
		}
	}
	if err := add(everyRole, nil); err != nil {
		return nil, fmt.Errorf("keys of the embedded NATS server: %w", err)
	}
	return all, nil
}

// tellURL writes the server's address beside the keys, in one step.
func tellURL(c config.Config, at string) error {
	name := urlFile(c)
	if err := os.WriteFile(name+".new", []byte(at+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// withOwnKey adds the role's key from the data folder if the configuration has no credentials and names the server that the
// keys belong to: commands on the machine of a "waggle up" need no setting then.
func withOwnKey(c config.Config, as permission.Role) (config.NATS, error) {
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
		n.NKey = keys.SeedFile(KeyFolder(c), cmp.Or(as, everyRole))
	}
	return n, nil
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

// openSigning reads the keys that sign and verify commands. A process with its own bus makes a key if none is set.
func (p *process) openSigning() (err error) {
	c := p.Config.Signing
	switch {
	case !p.Use.Embedded:
		c, err = withOwnSigning(p.Config)
	case c.KeyFile == "":
		_, err = keys.EnsureSigning(KeyFolder(p.Config))
		c.KeyFile = keys.SigningFile(KeyFolder(p.Config))
		if c.PublicKeyFile == "" && len(c.PublicKeys) == 0 {
			c.PublicKeyFile = keys.SigningPublicFile(KeyFolder(p.Config))
		}
	}
	if err != nil {
		return err
	}
	p.signing, err = signing.Open(c, p.Use.Has(config.RoleGateway), p.now)
	return err
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
