package bustest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// Account returns the URL of an empty account of the server that all tests share, and the function that deletes the account
// with its streams. The account has its own JetStream limits and sees nothing of other accounts.
//
// The first test process that needs the server starts it, from whichever package; it ends itself when no test process has
// used it for a while.
func Account(t testing.TB) (url string, drop func()) {
	t.Helper()
	at, err := server()
	require.NoError(t, err)
	name := "t-" + uuid.NewString()
	return withUser(at, name), func() {
		if err := dropAccount(at, name); err != nil {
			t.Errorf("delete the test's account: %v", err)
		}
	}
}

// withUser returns the URL with a user. NATS takes a user without a password for a token.
func withUser(at, name string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err) // natsd has printed it
	}
	u.User = url.UserPassword(name, "test")
	return u.String()
}

func dropAccount(at, name string) error {
	nc, err := nats.Connect(withUser(at, "natsd"), nats.Timeout(MaxWait))
	if err != nil {
		return err
	}
	defer nc.Close()
	m, err := nc.Request("natsd.drop", []byte(name), MaxWait)
	if err == nil && len(m.Data) > 0 {
		err = errors.New(string(m.Data))
	}
	return err
}

// server returns the URL of the shared server, and starts it unless it runs. The process holds its lock "users" from then on,
// which keeps the server alive.
var server = sync.OnceValues(func() (string, error) {
	path, err := program()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	dir, err := folder(digest(text)) // another program has another server
	if err != nil {
		return "", err
	}
	if err := hold(filepath.Join(dir, "users")); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	known := filepath.Join(dir, "url")
	if at, err := os.ReadFile(filepath.Clean(known)); err == nil && listens(string(at)) {
		return string(at), nil
	}
	at, err := startShared(path, dir)
	if err != nil {
		return "", err
	}
	return at, os.WriteFile(known, []byte(at), 0o600)
})

// startShared starts the shared server in a new session, so that it outlives this process and its terminal.
func startShared(path, dir string) (string, error) {
	store := filepath.Join(dir, "store")
	if root := inMemory(); root != "" { // where a server of another folder has another store
		store = filepath.Join(root, "waggle-natsd-"+digest([]byte(dir)))
	}
	if err := os.RemoveAll(store); err != nil { // of a server that was killed
		return "", err
	}
	log, err := os.Create(filepath.Join(filepath.Clean(dir), "log"))
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(path, "-shared", dir, "-dir", store)
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setsid: true}
	at, err := launch(cmd)
	if err != nil {
		return "", fmt.Errorf("start the shared NATS server: %w", err)
	}
	return at, cmd.Process.Release()
}

// digest returns a name for what has these bytes.
func digest(of []byte) string { return fmt.Sprintf("%x", sha256.Sum256(of))[:12] }

// listens reports whether something accepts connections at the URL.
func listens(at string) bool {
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(at, "nats://"), MaxWait)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}
