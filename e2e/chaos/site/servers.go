package site

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// server is the configuration of a NATS server: that of deploy/nats with its own
// addresses. The extra user is the observer's.
const server = `
server_name: %s
listen: "%s"
http: "%s"
max_payload: 1MB
lame_duck_grace_period: "1s"
lame_duck_duration: "30s"
jetstream {
  store_dir: %q
  sync_interval: "1s"
  max_file_store: 1TB
}
cluster {
  name: chaos
  listen: "%s"
  no_advertise: true
  routes: [ %s ]
}
include "accounts.conf"
`

const observer = "      { nkey: $WAGGLE_NKEY_OBSERVER } # not of the installation: the test's own\n"

// built are the folders of binaries that were built for all tests.
var built struct {
	sync.Mutex
	dirs []string
}

func builtDir() (string, error) {
	dir, err := os.MkdirTemp("", "waggle-chaos-")
	built.Lock()
	defer built.Unlock()
	built.dirs = append(built.dirs, dir)
	return dir, err
}

// CleanUp removes built files. Call it once, after all tests.
func CleanUp() error {
	built.Lock()
	defer built.Unlock()
	var errs []error
	for _, dir := range built.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// natsBinary builds the NATS server of the pinned version once.
var natsBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("WAGGLE_CHAOS_NATS"); path != "" {
		return path, nil
	}
	dir, err := builtDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nats-server")
	out, err := exec.Command("go", "build", "-o", path, "github.com/waggle-dev/waggle/cmd/nats-server").CombinedOutput() //nolint:gosec // ours
	if err != nil {
		return "", fmt.Errorf("build the NATS server: %w: %s", err, out)
	}
	return path, nil
})

// accounts writes the users of deploy/nats and the observer into the folder.
func (s *Site) accounts() {
	s.T.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "nats", "accounts.conf"))
	require.NoError(s.T, err)
	const head = "jetstream: enabled\n    users: [\n"
	require.Equal(s.T, 1, strings.Count(string(raw), head))
	text := strings.Replace(string(raw), head, head+observer, 1)
	require.NoError(s.T, os.WriteFile(filepath.Join(s.Dir, "accounts.conf"), []byte(text), 0o600)) //nolint:gosec // a folder of the test's
}

func (s *Site) startServers() {
	s.T.Helper()
	binary := ""
	if !s.clocks {
		var err error
		binary, err = natsBinary()
		require.NoError(s.T, err)
	}
	s.accounts()
	env := s.publicKeys()
	routes := make([]string, servers)
	listens := make([]string, servers)
	for i := range servers {
		name := fmt.Sprintf("nats-%d", i+1)
		m := &Member{s: s, Name: name, Role: roleNATS, Place: s.Net.Place(name)}
		m.Addr = m.Place.Addr()
		listens[i] = m.Place.Addr()
		routes[i] = fmt.Sprintf("%q", "nats-route://"+listens[i])
		s.http[m] = m.Place.Addr()
		s.Servers = append(s.Servers, m)
	}
	for i, m := range s.Servers {
		store := s.disk(m.Name)
		file := filepath.Join(s.Dir, m.Name+".conf")
		text := fmt.Sprintf(server, m.Name, m.Addr, s.http[m], store, listens[i], strings.Join(routes, ", "))
		require.NoError(s.T, os.WriteFile(file, []byte(text), 0o600))
		m.Store = store
		m.opt = process.Options{Name: m.Name, Dir: s.Dir, Env: env, Program: binary, Wrap: m.Place.Wrap(), Args: []string{"-c", file}}
		m.wind(s.T)
		m.Start()
	}
}

// disk returns the folder of a NATS server: a disk of its own where that can be had.
func (s *Site) disk(name string) string {
	s.T.Helper()
	dir := filepath.Join(s.Dir, "disk-"+name)
	require.NoError(s.T, os.MkdirAll(dir, 0o700))
	if own, _ := s.Net.Isolated(); own {
		require.NoError(s.T, syscall.Mount("disk", dir, "tmpfs", 0, diskSize))
		s.T.Cleanup(func() { require.NoError(s.T, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	}
	return dir
}
